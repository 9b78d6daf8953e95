#include "strategies/pipeline/model_parallel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "strategies/compute.h"
#include "strategies/pipeline/explain.h"
#include "strategies/pipeline/stage_costs.h"
#include "strategies/pipeline/trainer.h"
#include "strategies/synchronous.h"

namespace tutti {
namespace {

// The stages and copies that the planner chose, as settings.
std::vector<std::string> decided_copies(const Placement& placement) {
  if (placement.stages.size() == 1)
    return {"stages=1", fmt::format("copies={}", placement.copies.front())};
  std::vector<size_t> begins;
  for (size_t stage = 1; stage < placement.stages.size(); ++stage)
    begins.push_back(placement.stages[stage].begin);
  return {fmt::format("stages=[{}]", fmt::join(begins, ", ")),
          fmt::format("copies=[{}]", fmt::join(placement.copies, ", "))};
}

// A shard makes its own parts of layers, in memory of its own.
std::vector<Range> layers_of(const Placement& placement, Rank rank) {
  std::vector<Range> layers;
  if (placement.shards > 1) return layers;
  for (const size_t stage : placement.shape(0).stages_of(placement.node_of(rank)))
    layers.push_back(placement.stages[stage]);
  return layers;
}

Facts facts_of(const Placement& placement) {
  return {{"stages", placement.stages},
          {"nodes", static_cast<int64_t>(placement.nodes)},
          {"replicas", static_cast<int64_t>(placement.replicas)},
          {"shards", static_cast<int64_t>(placement.shards)},
          {"micro_batches", static_cast<int64_t>(placement.micro_batches)},
          {"schedule", std::string(word_of(placement.schedule))},
          {"copies", std::vector<int64_t>(placement.copies.begin(), placement.copies.end())}};
}

}  // namespace

int64_t least_parts(const PipelineConfig& config) {
  int64_t copies = std::max<int64_t>(1, config.copies.parts);
  for (const int64_t count : config.copies.places) copies = std::max(copies, count);
  return std::max<int64_t>(1, config.replicas) * copies;
}

void check_optimizer(const PipelineConfig& config, const OptimizerConfig& optimizer) {
  if (optimizer.clip_norm > 0)
    throw ConfigError(
        "optimizer.clip_norm",
        fmt::format("optimizer.clip_norm = {} needs the norm of the whole gradient, of which a "
                    "node of strategy.kind = \"{}\" has a part; set it to 0",
                    optimizer.clip_norm, word_of(config.kind)));
}

void place_model(Plan& plan, const PipelineConfig& config, const PlanInput& input) {
  const auto placed = [&](const PlanInput& given) {
    return std::make_shared<PipelinePlan>(config, place_stages(config, given));
  };
  const auto detail = placed(input);
  const Placement& placement = detail->placement;
  // With task.deterministic layers are not split (placement.cpp), so it is bitwise then.
  if (!placement.asynchronous()) plan.equivalence = synchronous_class(input.task);
  plan.in_words = shape_in_words(placement);
  plan.reasons = explain_pipeline(placement, config, input);
  if (config.copies.automatic) plan.decided = decided_copies(placement);
  plan.facts = facts_of(placement);
  const AtLargestBatch largest(input);
  const bool grows = largest.input().task.global_batch != input.task.global_batch;
  const auto at_largest = grows ? placed(largest.input()) : detail;
  for (Rank rank = 0; rank < plan.workers; ++rank) {
    NodePlan& node = plan.nodes[static_cast<size_t>(rank)];
    node.layers = layers_of(placement, rank);
    set_traffic(node, node_traffic(placement, config, input, rank));
    node.memory_bytes = node_memory(at_largest->placement, config, largest.input(), rank);
  }
  plan.detail = detail;
}

Plan ModelParallel::plan(const PlanInput& input) const {
  const PipelineConfig config = resolved(input.cluster);
  Plan plan = begin_plan(input, taxonomy(), {.least_parts = least_parts(config)});
  check(input.task, input.cluster);
  check_optimizer(config_, input.optimizer);
  place_model(plan, config, input);
  return plan;
}

NodeResult ModelParallel::run(Context& context) const {
  const auto& [config, placement] = detail_of<PipelinePlan>(context.plan);
  // One order of samples for all: stages and shards share a batch, and replicas take parts of it.
  Batches batches = deal_batches(context, 1);
  PipelineTrainer trainer(context, placement, config);
  context.node.membership().end_waits_on_any_loss(true);
  run_steps(context, batches, trainer);
  trainer.gather();
  return {.members = {0}};  // who has the whole model
}

}  // namespace tutti
