#include "strategies/pipeline/model_parallel.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "strategies/pipeline/explain.h"
#include "strategies/pipeline/stage_costs.h"
#include "strategies/pipeline/trainer.h"
#include "strategies/synchronous.h"

namespace tutti {

void ModelParallel::validate_optimizer(const OptimizerConfig& optimizer) const {
  if (optimizer.clip_norm > 0)
    throw ConfigError(
        "optimizer.clip_norm",
        fmt::format("optimizer.clip_norm = {} needs the norm of the whole gradient, of which a "
                    "node of strategy.kind = \"{}\" has a part; set it to 0",
                    optimizer.clip_norm, config_.kind));
}

void ModelParallel::validate_plan(const Plan& plan) const {
  place_stages(resolved(plan.cluster), plan);
}

std::vector<std::string> ModelParallel::explain(const Plan& plan) const {
  return explain_pipeline(resolved(plan.cluster), plan);
}

std::string ModelParallel::plan_in_words(const Plan& plan) const {
  return pipeline_in_words(resolved(plan.cluster), plan);
}

// The search runs once for all nodes, because it takes longer than the other choices.
void ModelParallel::settle(const Plan& plan, ClusterConfig&) {
  if (!config_.copies.automatic) return;
  const Placement placement = place_stages(resolved(plan.cluster), plan);
  config_.stages = {.parts = 1, .places = {}, .automatic = false};
  config_.copies = {.parts = std::ssize(placement.copies), .places = {}, .automatic = false};
  if (placement.stages.size() == 1) {
    config_.copies.parts = static_cast<int64_t>(placement.copies.front());
    return;
  }
  config_.stages.parts = 0;
  for (size_t stage = 1; stage < placement.stages.size(); ++stage)
    config_.stages.places.push_back(static_cast<int64_t>(placement.stages[stage].begin));
  config_.copies.places.assign(placement.copies.begin(), placement.copies.end());
}

// Copies and replicas need samples of their own. Nodes of different stages and shards share them.
int64_t ModelParallel::least_parts(const ClusterConfig& cluster) const {
  const PipelineConfig config = resolved(cluster);
  int64_t copies = std::max<int64_t>(1, config.copies.parts);
  for (const int64_t count : config.copies.places) copies = std::max(copies, count);
  return std::max<int64_t>(1, config.replicas) * copies;
}

// With task.deterministic layers are not split (placement.cpp), so it is bitwise then.
std::string ModelParallel::equivalence(const TaskConfig& task) const {
  return config_.schedule == "asynchronous" ? "" : synchronous_class(task);
}

// A shard makes its own parts of layers, in memory of its own.
std::vector<Range> ModelParallel::layers_of(const Plan& plan, Rank worker) const {
  const Placement placement = place_stages(resolved(plan.cluster), plan);
  std::vector<Range> layers;
  if (placement.shards > 1) return layers;
  for (const size_t s : placement.shape(0).stages_of(placement.node_of(worker)))
    layers.push_back(placement.stages[s]);
  return layers;
}

StepCost ModelParallel::step_cost(const Plan& plan) const {
  const PipelineConfig config = resolved(plan.cluster);
  const Placement placement = place_stages(config, plan);
  StepCost most;
  for (Rank rank = 0; rank < plan.cluster.workers; ++rank) {
    const StepCost cost = node_traffic(placement, config, plan, rank);
    if (cost.bytes_sent >= most.bytes_sent) most = cost;
  }
  return most;
}

std::vector<double> ModelParallel::memory_by_worker(const Plan& plan) const {
  const PipelineConfig config = resolved(plan.cluster);
  const Placement placement = place_stages(config, plan);
  std::vector<double> bytes;
  bytes.reserve(static_cast<size_t>(plan.cluster.workers));
  for (Rank rank = 0; rank < plan.cluster.workers; ++rank)
    bytes.push_back(node_memory(placement, config, plan, rank));
  return bytes;
}

double ModelParallel::memory_bytes(const Plan& plan) const {
  const std::vector<double> bytes = memory_by_worker(plan);
  return *std::max_element(bytes.begin(), bytes.end());
}

void ModelParallel::run(Context& context) const {
  const PipelineConfig config = resolved(context.cluster);
  const Placement placement = place_stages(
      config, {context.task, context.cluster, context.optimizer, context.model.architecture()});
  // One order of samples for all: stages and shards share a batch, and replicas take parts of it.
  Batches batches(context.data.splits.train, context.task.partition, 1, context.task.seed,
                  !context.node.clock().cost_only());
  PipelineTrainer trainer(context, placement, config);
  context.node.membership().end_waits_on_any_loss(true);
  run_steps(context, batches, trainer);
  trainer.gather();
  context.members = {0};  // who has the whole model
}

}  // namespace tutti
