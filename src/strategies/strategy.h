// Strategy: how nodes come to agree on parameters. One file per architecture, plain blocking code
// that sees the Node and nothing else of the machine.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/log.h"
#include "core/schema.h"
#include "fabric/cluster.h"
#include "fabric/node.h"
#include "fabric/stopwatch.h"
#include "models/model.h"
#include "optimizers/optimizer.h"
#include "strategies/recorder.h"
#include "strategies/task.h"

namespace tutti {

// An architecture's place in the taxonomy of the field.
struct Taxonomy {
  std::string_view structure;     // single node | client-server | peer-to-peer
  std::string_view parallelism;   // none | data | model | hybrid
  std::string_view optimisation;  // centralised | decentralised
  std::string_view timing;        // synchronous | asynchronous | bounded
  std::string_view pattern;       // communication pattern
};

// Tensors that a run keeps beside the parameters of its model, when those alone do not determine
// its answers.
struct Attachment {
  std::string about;     // JSON, for the strategy that reads it again
  Architecture tensors;  // names and shapes; it has no layers
  std::vector<float> values;
};

// Answers new samples for a run whose model alone is not enough.
class Answerer {
 public:
  virtual ~Answerer() = default;
  struct Answers {
    std::vector<float> scores;    // of each sample, by class
    std::vector<std::string> by;  // who answered each sample
  };
  virtual Answers answer(const Batch& batch) = 0;
};

// Everything that one node needs to take part. The model's gradients live in the window if the
// strategy asked for one.
struct Context {
  Node& node;
  const TaskConfig& task;
  const ClusterConfig& cluster;
  const OptimizerConfig& optimizer;
  const Data& data;
  Model& model;
  Window* window;
  Stopwatch& watch;
  Recorder& recorder;
  Log& log;
  // Who trains and evaluates together, by rank. A strategy that goes on without a lost worker takes
  // it out, on every node alike; a node that is not among them takes no part in the final test, and
  // is not asked for the final parameters.
  std::vector<Rank> members;
  std::string folder = {};  // of the run; empty: it keeps no files
  // Set by a strategy whose parameters alone do not say what it answers: measures the final quality
  // on this node's part, once training is over. Not a number where the node does not know it.
  std::function<double()> test = {};
  // Set by the same strategies, on the node that has all parameters in the end.
  Attachment attachment = {};
};

// What a step costs each node, as far as it can be known before a run.
struct StepCost {
  double bytes_sent = 0;    // of the node that sends most
  double messages = 0;      // of the same node
  double extra_memory = 0;  // bytes beyond parameters, gradients, optimizer and activations
};

// What a job amounts to before it runs: the input of validation and prediction.
struct Plan {
  const TaskConfig& task;
  const ClusterConfig& cluster;
  const OptimizerConfig& optimizer;
  const Architecture& architecture;
  size_t samples = 0;  // to train on; 0: the data is not read yet
};

// What nodes of one host have in common. Without `gradients` those of the model lie elsewhere.
struct SharedMemory {
  Window* window = nullptr;
  std::span<float> gradients;
};

// The books of the run that this one resumes.
struct Resumed {
  int64_t steps = 0, samples = 0;  // of all workers; 0 when the run starts anew
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual void visit(Visitor& visitor) = 0;  // its keys below [strategy], all but `kind`
  // Throws ConfigError naming the settings that contradict each other.
  virtual void validate(const TaskConfig& task, const ClusterConfig& cluster) const = 0;
  // The same for the optimizer. By default every one will do.
  virtual void validate_optimizer(const OptimizerConfig& optimizer) const;
  // The same for the data, once it is read.
  virtual void validate_data(const Data& data, const ClusterConfig& cluster) const;
  // Returns the layers to train if they differ from those of task.model. Any later plan then has
  // these layers. Throws ConfigError when the model does not allow it.
  virtual Architecture arrange(const Plan& plan) const;
  // The same for the model, once its layers are known.
  virtual void validate_plan(const Plan& plan) const;
  // What it makes of the model and the cluster, and why, line by line: `tutti check` prints it.
  virtual std::vector<std::string> explain(const Plan& plan) const;
  // Returns the plan in a few words, for tables: "8 servers, on the workers' machines". Empty when
  // there is nothing to plan.
  virtual std::string plan_in_words(const Plan& plan) const;
  // Decides which nodes there are when the settings leave that open (servers = "auto"), for this
  // model and the machines of the plan's cluster. Changes `cluster` to match.
  virtual void settle(const Plan& plan, ClusterConfig& cluster);
  virtual Taxonomy taxonomy() const = 0;  // with its settings taken into account
  // The role of each node. By default every node is a worker.
  virtual std::vector<std::string> roles(const ClusterConfig& cluster) const;
  // True when the loss of this node is survived: the others finish, and the run counts as done.
  virtual bool goes_on_without(std::string_view role, Rank lost) const;
  // True when it moves only the rows of a sparse model that a batch touches, and updates them one
  // by one; otherwise it treats all rows as one dense vector.
  virtual bool moves_rows() const { return false; }
  // True when, besides, no node has all rows: a worker holds those of its batch alone, and in the
  // end those that the data touches.
  virtual bool spreads_rows() const { return false; }
  // Bytes of shared window per node that it cannot do without; 0: none. The gradients come first.
  virtual size_t window_bytes(const Plan& plan) const;
  // Opens what it shares, on all nodes at once and before there is a model, whose gradients may lie
  // there. By default a window of window_bytes(); throws FabricError when it cannot be had.
  virtual SharedMemory share(Node& node, const Plan& plan, Log& log) const;
  // The layers that a worker has the parameters of while it trains. By default all.
  virtual std::vector<Range> layers_of(const Plan& plan, Rank worker) const;
  virtual StepCost step_cost(const Plan& plan) const = 0;
  // Of the worker that needs most: parameters, gradients, optimizer, activations and what
  // step_cost() adds; without the data and the program itself.
  virtual double memory_bytes(const Plan& plan) const;
  // The same of each worker, where they are not alike. By default they are.
  virtual std::vector<double> memory_by_worker(const Plan& plan) const;
  // Returns the memory of a node that is not a worker, if there are any. By default the same as for
  // a worker.
  virtual double server_memory_bytes(const Plan& plan) const;
  // Returns the least number of parts of a global batch, each with at least one sample. By default
  // every worker has one.
  virtual int64_t least_parts(const ClusterConfig& cluster) const;
  // Samples that a step takes where that does not follow from the global batch; 0: it does.
  virtual double samples_per_step(const TaskConfig& task, const ClusterConfig& cluster,
                                  size_t samples) const;
  // Steps of a run where they do not follow from its batches at all; 0: they do.
  virtual int64_t steps(const TaskConfig& task, const Data& data) const;
  // Steps after which all are alike, in a synchronous strategy that adapts to the cluster first.
  virtual int64_t settling_steps() const { return 0; }
  // Names the class of strategies that compute the same parameters for this task; the equivalence
  // suite proves it. Empty: none. A comparison may compute the gradients of a class only once.
  virtual std::string equivalence(const TaskConfig& task) const;
  // Makes what this architecture can use out of a cluster that was described for others.
  virtual void fit(ClusterConfig& cluster) const;
  // Returns the name of the attachment that a run keeps. Empty when parameters are enough to
  // answer.
  virtual std::string keeps() const { return {}; }
  // Answers with a model that has the parameters of a run. Returns nullptr when nothing is kept.
  // Throws DataError when the attachment does not belong to such a run.
  virtual std::unique_ptr<Answerer> answerer(const Plan& plan, Model& model,
                                             const Attachment& attachment) const;
  // Returns where the run starts. Throws DataError when the run that its settings name cannot be
  // resumed, or had other data or other settings that matter.
  virtual Resumed resumed(const Plan& plan, const Data& data) const;
  // One node's part, on each node at once: the strategy object itself is shared and does not
  // change.
  virtual void run(Context& context) const = 0;
};

// One configuration of an architecture, under the name by which a comparison shows it.
struct Variant {
  std::string name;                   // "ring"
  std::vector<std::string> settings;  // below [strategy], e.g. "topology=ring"
};

struct StrategyEntry {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<Strategy> (*make)();
  // What `tutti compare --strategies all` runs of it.
  std::vector<Variant> (*variants)();
};
const std::vector<StrategyEntry>& strategy_catalog();
std::unique_ptr<Strategy> make_strategy(std::string_view kind);

}  // namespace tutti
