// What the plans of all strategies begin with and are made of.
#pragma once

#include <string>
#include <vector>

#include "data/data_sizes.h"
#include "optimizers/optimizer.h"
#include "strategies/plan.h"
#include "strategies/task.h"

namespace tutti {

// What a plan is made from.
struct PlanInput {
  const TaskConfig& task;
  const ClusterConfig& cluster;
  const OptimizerConfig& optimizer;
  const Architecture& architecture;  // the layers of task.model
  DataSizes data = {};
};

// The same at the end of a run whose batches grow: what memory is needed for.
class AtLargestBatch {
 public:
  explicit AtLargestBatch(const PlanInput& input);
  const PlanInput& input() const { return input_; }

 private:
  TaskConfig task_;
  PlanInput input_;
};

// What a step costs a node, as far as it can be known before a run.
struct StepCost {
  double bytes_sent = 0;
  double messages = 0;
  double extra_memory = 0;  // bytes beyond parameters, gradients, optimizer and activations
};

// The nodes of a strategy, and how it cuts batches.
struct Staff {
  std::vector<std::string> roles = {};  // by rank; empty: all nodes are workers
  int64_t least_parts = 0;  // of a global batch, each with at least one sample; 0: one per worker
};

// Begins a plan: all nodes have all layers and send nothing. Throws ConfigError when cluster, task
// and data do not go together, whatever the strategy.
Plan begin_plan(const PlanInput& input, const Taxonomy& taxonomy, const Staff& staff = {});

// The roles of the workers, and of `count` nodes of another role after them.
std::vector<std::string> workers_and(const ClusterConfig& cluster, const char* role,
                                     int64_t count = 1);

// What a worker needs that has the whole model and an equal share of the batch.
double worker_memory(const PlanInput& input, double extra_bytes);

// Gives all workers the same cost, with the memory of a whole model.
void set_workers(Plan& plan, const PlanInput& input, const StepCost& cost);
void set_traffic(NodePlan& node, const StepCost& cost);

// Says that a node has no model and no layers: a server that needs initial values at most, or a
// scheduler.
void set_no_model(NodePlan& node);

// Counts steps and samples of a run whose steps take a global batch each, or `samples_per_step`.
void count_steps(Plan& plan, const PlanInput& input, double samples_per_step = 0);

}  // namespace tutti
