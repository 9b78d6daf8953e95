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
#include "strategies/node_model.h"
#include "strategies/planning.h"
#include "strategies/recorder.h"
#include "strategies/task.h"

namespace tutti {

// Tensors that a run keeps beside the parameters of its model, when those alone do not determine
// its answers.
struct Attachment {
  std::string about;     // JSON, for the strategy that reads it again
  Architecture tensors;  // names and shapes; it has no layers
  std::vector<float> values;
};

using LoadAttachment = std::function<Attachment(const std::string& name)>;

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

// Everything that one node needs to take part. The gradients of a whole model live in the window if
// the plan says so.
struct Context {
  Node& node;
  const Plan& plan;
  const TaskConfig& task;
  const ClusterConfig& cluster;
  const OptimizerConfig& optimizer;
  const Data& data;
  NodeModel& model;
  Window* window;
  Stopwatch& watch;
  Recorder& recorder;
  Log& log;
  // Who trains and evaluates together from the beginning, by rank. A strategy that goes on without
  // a lost worker returns who is left, on every node alike.
  const std::vector<Rank> members;
  std::string folder = {};  // of the run; empty: it keeps no files

  Arithmetic arithmetic() const { return node.clock().arithmetic(); }
};

// What one node's part in a run leaves.
struct NodeResult {
  // Who has the final parameters and measures them together, by rank; a node that is not among
  // them takes no part in the final test, and is not asked for the parameters.
  std::vector<Rank> members;
  // Measures the final quality on this node's part, where the parameters alone do not say what the
  // strategy answers. Not a number where the node does not know it.
  std::function<double()> test = {};
  // Kept by the node that has all parameters in the end, where parameters are not enough.
  Attachment attachment = {};
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual void visit(Visitor& visitor) = 0;  // its keys below [strategy], all but `kind`
  virtual Taxonomy taxonomy() const = 0;     // with its settings taken into account
  // Makes what this architecture can use out of a cluster that was described for others.
  virtual void fit(ClusterConfig&) const {}
  // Decides everything that can be decided before a run. Throws ConfigError naming the settings
  // that contradict each other.
  virtual Plan plan(const PlanInput& input) const = 0;
  // One node's part, on each node at once: the strategy object itself is shared and does not
  // change.
  virtual NodeResult run(Context& context) const = 0;
  // Answers with a model that has the parameters of a run, and with the attachment that the run
  // kept. Returns nullptr when the model alone answers. Throws DataError when the attachment does
  // not belong to such a run.
  virtual std::unique_ptr<Answerer> answerer(const PlanInput& input, Model& model,
                                             const LoadAttachment& load) const;
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
  bool one_worker = false;                         // it has no more than one
  std::vector<std::string_view> also_called = {};  // by other systems and papers
};
const std::vector<StrategyEntry>& strategy_catalog();
std::unique_ptr<Strategy> make_strategy(std::string_view kind);
const StrategyEntry& strategy_entry(std::string_view kind);

}  // namespace tutti
