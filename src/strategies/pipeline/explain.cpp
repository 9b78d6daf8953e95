#include "strategies/pipeline/explain.h"

#include <fmt/format.h>

#include "core/units.h"
#include "models/stage.h"
#include "strategies/pipeline/stage_costs.h"

namespace tutti {
namespace {

std::string shape_in_words(const Placement& placement) {
  return fmt::format(
      "{} stage{} on {} node{}{}", placement.stages.size(), placement.stages.size() == 1 ? "" : "s",
      placement.nodes, placement.nodes == 1 ? "" : "s",
      placement.replicas == 1 ? "" : fmt::format(" x {} replicas", placement.replicas));
}

std::string stage_in_words(const Placement& placement, const PipelineConfig& config,
                           const Plan& plan, size_t stage) {
  const Range layers = placement.stages[stage];
  const Architecture own = stage_of(plan.architecture, layers);
  const auto tasks =
      schedule_tasks(placement.schedule, placement.shape(0), stage % placement.nodes);
  const size_t in_flight = most_in_flight(tasks, stage);
  const double bytes = stage_memory(config, plan, own, in_flight,
                                    micro_batch_samples(plan, placement.micro_batches));
  return fmt::format(
      "stage {} on rank {}: layers {} to {} ({} to {}), {:.3g} % of the arithmetic, {} parameters, "
      "{} with {} under way{}",
      stage, placement.rank_of(0, stage), layers.begin, layers.end - 1, own.layers.front().name,
      own.layers.back().name, 100 * own.forward_flops() / plan.architecture.forward_flops(),
      own.parameter_count, human_quantity(bytes, Unit::kBytes),
      in_flight == 1 ? "1 micro-batch" : fmt::format("{} micro-batches", in_flight),
      stage + 1 == placement.stages.size()
          ? ""
          : fmt::format("; passes on {} for each sample",
                        human_quantity(static_cast<double>(output_values(own) * sizeof(float)),
                                       Unit::kBytes)));
}

}  // namespace

std::vector<std::string> explain_pipeline(const PipelineConfig& config, const Plan& plan) {
  const Placement placement = place_stages(config, plan);
  const auto nodes = static_cast<double>(placement.nodes);
  const auto passes =
      static_cast<double>(placement.shape(0).micro_batches * placement.shape(0).chunks());
  std::vector<std::string> lines = {
      fmt::format("{}, {} micro-batches of at most {} samples, schedule {}",
                  shape_in_words(placement), placement.shape(0).micro_batches,
                  micro_batch_samples(plan, placement.micro_batches), placement.schedule)};
  for (size_t stage = 0; stage < placement.stages.size(); ++stage)
    lines.push_back(stage_in_words(placement, config, plan, stage));
  if (plan.cluster.fabric == "virtual")
    lines.push_back(
        fmt::format("about {:.3g} ms a step", 1e3 * step_seconds(placement, config, plan)));
  lines.push_back(
      fmt::format("nodes idle {:.3g} % of it{}", 100 * bubble_share(placement, plan),
                  placement.schedule == "sequential"
                      ? ""
                      : fmt::format("; {:.3g} % if stages were equal and messages took no time",
                                    100 * (nodes - 1) / (passes + nodes - 1))));
  if (config.stages.automatic)
    for (const Alternative& each : alternatives(config, plan))
      lines.push_back(fmt::format("considered {}: {:.3g} ms a step, {} on the fullest node{}",
                                  shape_in_words(each.placement), 1e3 * each.step_s,
                                  human_quantity(each.memory_bytes, Unit::kBytes),
                                  each.fits ? "" : ", more than cluster.memory"));
  return lines;
}

}  // namespace tutti
