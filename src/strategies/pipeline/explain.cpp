#include "strategies/pipeline/explain.h"

#include <fmt/format.h>

#include "core/units.h"
#include "fabric/capabilities.h"
#include "models/shard.h"
#include "models/stage.h"
#include "strategies/pipeline/shard_costs.h"
#include "strategies/pipeline/stage_costs.h"

namespace tutti {
namespace {

std::string counted(size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string ranks_in_words(const Placement& placement, size_t stage) {
  const Rank first = placement.rank_of(0, stage, 0);
  const size_t copies = placement.shape(0).copies_of(stage);
  if (copies > 1)
    return fmt::format("ranks {} to {} in turn", first, placement.rank_of(0, stage, 0, copies - 1));
  if (placement.shards == 1) return fmt::format("rank {}", first);
  return fmt::format("ranks {} to {}", first, placement.rank_of(0, stage, placement.shards - 1));
}

std::string stage_in_words(const Placement& placement, const PipelineConfig& config,
                           const PlanInput& input, size_t stage) {
  const Range layers = placement.stages[stage];
  const Architecture own = part_of_stage(placement, input.architecture, stage, 0);
  const PipelineShape shape = placement.shape(0);
  const auto tasks = own_tasks(placement.schedule, shape, shape.node_of(stage, 0));
  const size_t in_flight = most_in_flight(tasks, stage);
  const double bytes = stage_memory(config, input, own, in_flight,
                                    micro_batch_samples(input, placement.micro_batches));
  return fmt::format(
      "stage {} on {}: layers {} to {} ({} to {}), {:.3g} % of the arithmetic, {} parameters, {} "
      "with {} under way{}{}",
      stage, ranks_in_words(placement, stage), layers.begin, layers.end - 1,
      input.architecture.layers[layers.begin].name, input.architecture.layers[layers.end - 1].name,
      100 * own.forward_flops() / input.architecture.forward_flops(), own.parameter_count,
      human_quantity(bytes, Unit::kBytes),
      in_flight == 1 ? "1 micro-batch" : fmt::format("{} micro-batches", in_flight),
      placement.shards > 1 || shape.copies_of(stage) > 1 ? " on each" : "",
      stage + 1 == placement.stages.size()
          ? ""
          : fmt::format("; passes on {} for each sample",
                        human_quantity(static_cast<double>(output_values(own) * sizeof(float)),
                                       Unit::kBytes)));
}

// What is summed within layers, and what every shard computes for itself.
std::vector<std::string> shards_in_words(const Placement& placement, const PipelineConfig& config,
                                         const PlanInput& input) {
  size_t forward = 0, backward = 0, values = 0;
  for (size_t stage = 0; stage < placement.stages.size(); ++stage) {
    const Architecture own = part_of_stage(placement, input.architecture, stage, 0);
    forward += forward_sums(own).size();
    backward += backward_sums(own).size();
    for (const auto& exchanges : {forward_exchanges(own, 1), backward_exchanges(own, 1)})
      for (const size_t each : exchanges) values += each;
  }
  std::string split;
  double whole = 0;
  size_t next = 0;
  for (const SplitRegion& region : split_regions(input.architecture, placement.shards)) {
    const auto& layers = input.architecture.layers;
    for (; next < region.layers.begin; ++next) whole += layers[next].flops;
    next = region.layers.end;
    split += fmt::format("{}{}", split.empty() ? "" : ", ", layers[region.layers.begin].name);
    if (region.layers.size() > 1)
      split += fmt::format(" to {}", layers[region.layers.end - 1].name);
  }
  for (; next < input.architecture.layers.size(); ++next)
    whole += input.architecture.layers[next].flops;
  return {fmt::format("split into {}: {}; {:.3g} % of the arithmetic is done by every shard",
                      placement.shards, split, 100 * whole / input.architecture.forward_flops()),
          fmt::format("sums over shards by {}: {} forward and {} backward, {} for each sample",
                      config.shard_topology, forward, backward,
                      human_quantity(static_cast<double>(values * sizeof(float)), Unit::kBytes))};
}

}  // namespace

std::string shape_in_words(const Placement& placement) {
  std::string text = fmt::format("{} on {}", counted(placement.stages.size(), "stage"),
                                 counted(placement.nodes, "node"));
  if (!placement.copies.empty())
    text += fmt::format(" (copies {})", fmt::join(placement.copies, ", "));
  if (placement.shards > 1) text += fmt::format(" x {} shards", placement.shards);
  if (placement.replicas > 1) text += fmt::format(" x {} replicas", placement.replicas);
  return text;
}

std::vector<std::string> explain_pipeline(const Placement& placement, const PipelineConfig& config,
                                          const PlanInput& input) {
  const auto nodes = static_cast<double>(placement.nodes);
  const auto passes =
      static_cast<double>(placement.shape(0).micro_batches * placement.shape(0).chunks());
  std::vector<std::string> lines = {
      fmt::format("{}, {} of at most {} samples{}", shape_in_words(placement),
                  placement.shape(0).micro_batches == 1
                      ? "1 micro-batch"
                      : fmt::format("{} micro-batches", placement.shape(0).micro_batches),
                  micro_batch_samples(input, placement.micro_batches),
                  placement.stages.size() == 1
                      ? ""
                      : fmt::format(", schedule {}", word_of(placement.schedule)))};
  for (size_t stage = 0; stage < placement.stages.size(); ++stage)
    lines.push_back(stage_in_words(placement, config, input, stage));
  if (placement.shards > 1)
    for (std::string& line : shards_in_words(placement, config, input))
      lines.push_back(std::move(line));
  if (capabilities_of(input.cluster).declared_hosts)
    lines.push_back(
        fmt::format("about {:.3g} ms a step", 1e3 * step_seconds(placement, config, input)));
  lines.push_back(fmt::format(
      "nodes idle {:.3g} % of it{}", 100 * bubble_share(placement, config, input),
      placement.schedule == PipelineSchedule::kSequential || placement.nodes == 1 ||
              !placement.copies.empty()
          ? ""
          : fmt::format("; {:.3g} % if stages were equal and messages took no time",
                        100 * (nodes - 1) / (passes + nodes - 1))));
  if (config.is_automatic())
    for (const Alternative& each : alternatives(config, input))
      lines.push_back(fmt::format("considered {}: {:.3g} ms a step, {} on the fullest node{}",
                                  shape_in_words(each.placement), 1e3 * each.step_s,
                                  human_quantity(each.memory_bytes, Unit::kBytes),
                                  each.fits ? "" : ", more than cluster.memory"));
  return lines;
}

}  // namespace tutti
