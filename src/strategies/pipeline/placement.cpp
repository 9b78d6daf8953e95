#include "strategies/pipeline/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "models/stage.h"
#include "strategies/pipeline/planner.h"
#include "strategies/pipeline/stage_costs.h"

namespace tutti {
namespace {

bool is_interleaved(const PipelineConfig& config) { return config.schedule == "interleaved"; }

// How many stages the settings ask for.
size_t stage_count(const PipelineConfig& config, size_t nodes) {
  if (!config.stages.places.empty()) return config.stages.places.size() + 1;
  if (config.stages.parts > 0) return static_cast<size_t>(config.stages.parts);
  return is_interleaved(config) && nodes > 1 ? 2 * nodes : nodes;
}

void check_count(const PipelineConfig& config, const Plan& plan, size_t stages, size_t nodes) {
  const bool fits = is_interleaved(config) && nodes > 1 ? stages % nodes == 0 : stages == nodes;
  if (!fits)
    throw ConfigError(
        "strategy.stages",
        fmt::format("strategy.stages makes {} stages, but cluster.workers = {} and "
                    "strategy.replicas = {} leave {} nodes for a pipeline; {}",
                    stages, plan.cluster.workers,
                    plan.cluster.workers / static_cast<int64_t>(nodes), nodes,
                    is_interleaved(config) && nodes > 1
                        ? "an interleaved one needs a multiple of them"
                        : fmt::format("set cluster.workers = {}",
                                      stages * static_cast<size_t>(plan.cluster.workers) / nodes)));
  const size_t most = plan.architecture.cuts().size() + 1;
  if (stages > most)
    throw ConfigError(
        "strategy.stages",
        fmt::format(
            "strategy.kind = \"pipeline\" needs {} stages here, but task.model = \"{}\" has "
            "at most {}: it can be cut {}; use fewer workers, more strategy.replicas or a "
            "deeper model",
            stages, plan.task.model.kind, most, cuts_in_words(plan.architecture)));
}

// What the pieces between neighbouring cuts cost as a part of each stage. A stage costs what its
// pieces do; that what passes between them is counted twice in its memory keeps to the safe side.
class PieceCosts {
 public:
  PieceCosts(const PipelineConfig& config, const Plan& plan, const Placement& placement,
             size_t stages)
      : pieces_(stages_between(plan.architecture, plan.architecture.cuts())),
        limit_bytes_(plan.cluster.fabric == "virtual" ? plan.cluster.memory_bytes
                                                      : std::numeric_limits<double>::infinity()) {
    PipelineShape shape = placement.shape(0);
    shape.stages = stages;
    const double samples = micro_batch_samples(plan, placement.micro_batches);
    for (size_t stage = 0; stage < stages; ++stage) {
      const size_t in_flight =
          most_in_flight(schedule_tasks(placement.schedule, shape, stage % placement.nodes), stage);
      Placement trial = placement;
      trial.stages.resize(stages);
      std::vector<Cost> costs;
      for (const Range layers : pieces_) {
        trial.stages[stage] = layers;
        costs.push_back(
            {times_of(trial, plan, stage),
             stage_memory(config, plan, stage_of(plan.architecture, layers), in_flight, samples)});
      }
      costs_.push_back(std::move(costs));
    }
  }

  const std::vector<Range>& pieces() const { return pieces_; }

  // Seconds for a micro-batch; infinity where the stage does not fit, if that counts.
  double of(size_t stage, Range part, bool limited) const {
    double compute_s = 0, bytes = 0;
    for (size_t i = part.begin; i < part.end; ++i) {
      const Cost& cost = costs_[stage][i];
      compute_s += cost.times.forward_s + cost.times.backward_s;
      bytes += cost.memory_bytes;
    }
    if (limited && bytes > limit_bytes_) return std::numeric_limits<double>::infinity();
    if (part.end == pieces_.size()) return compute_s;
    return std::max(compute_s, 2 * costs_[stage][part.end - 1].times.transfer_s);
  }

 private:
  struct Cost {
    StageTimes times;
    double memory_bytes;
  };
  std::vector<Range> pieces_;
  double limit_bytes_;
  std::vector<std::vector<Cost>> costs_;  // by stage and piece
};

// The stages with the smallest largest time of a micro-batch, on the nodes that they come to.
std::vector<Range> balanced_stages(const PipelineConfig& config, const Plan& plan,
                                   const Placement& placement, size_t count) {
  const PieceCosts costs(config, plan, placement, count);
  const std::vector<Range>& pieces = costs.pieces();
  const auto best = [&](bool limited) {
    return partition_chain(pieces.size(), count, [&, limited](size_t stage, Range part) {
      return costs.of(stage, part, limited);
    });
  };
  // Where nothing fits, the balanced way: `tutti check` says how much is missing.
  auto partition = best(true);
  if (!partition) partition = best(false);
  TUTTI_CHECK(partition.has_value());
  std::vector<Range> stages;
  for (const Range part : partition->stages)
    stages.push_back({pieces[part.begin].begin, pieces[part.end - 1].end});
  return stages;
}

size_t default_micro_batches(const PipelineConfig& config, const Plan& plan, size_t nodes,
                             size_t replicas) {
  const auto most = static_cast<size_t>(plan.task.global_batch) / replicas;
  const size_t wanted = std::max<size_t>(1, std::min(4 * nodes, most));
  return is_interleaved(config) && wanted > nodes ? wanted / nodes * nodes : wanted;
}

void choose_micro_batches(const PipelineConfig& config, const Plan& plan, Placement& placement) {
  if (placement.asynchronous()) return;  // batches are not cut
  if (plan.task.deterministic) {
    placement.micro_batches = static_cast<size_t>(plan.task.lanes);
  } else {
    const size_t each =
        config.micro_batches > 0
            ? static_cast<size_t>(config.micro_batches)
            : default_micro_batches(config, plan, placement.nodes, placement.replicas);
    placement.micro_batches = each * placement.replicas;
  }
  if (placement.micro_batches > static_cast<size_t>(plan.task.global_batch) &&
      !plan.task.deterministic)
    throw ConfigError(
        "strategy.micro_batches",
        fmt::format("strategy.micro_batches = {} in {} replicas are more than the "
                    "samples of task.global_batch = {}; lower the one or raise the "
                    "other",
                    config.micro_batches, placement.replicas, plan.task.global_batch));
  for (size_t replica = 0; replica < placement.replicas; ++replica) {
    const size_t own = placement.micro_batches_of(replica).size();
    if (own == 0 || (is_interleaved(config) && own % placement.nodes != 0))
      throw ConfigError(
          plan.task.deterministic ? "task.lanes" : "strategy.micro_batches",
          fmt::format("strategy.schedule = \"{}\" sends {} micro-batches through the {} nodes of "
                      "replica {}; it takes at least one{}: set {}",
                      config.schedule, own, placement.nodes, replica,
                      is_interleaved(config) ? " and a multiple of the nodes" : "",
                      plan.task.deterministic ? "task.lanes" : "strategy.micro_batches"));
  }
}

Placement placed(const PipelineConfig& config, const Plan& plan, size_t replicas) {
  Placement placement;
  placement.schedule = config.schedule;
  placement.replicas = replicas;
  placement.nodes = static_cast<size_t>(plan.cluster.workers) / replicas;
  const size_t count = stage_count(config, placement.nodes);
  check_count(config, plan, count, placement.nodes);
  choose_micro_batches(config, plan, placement);
  placement.stages = config.stages.places.empty()
                         ? balanced_stages(config, plan, placement, count)
                         : given_stages(plan.architecture, config.stages.places, "strategy.stages");
  return placement;
}

}  // namespace

std::vector<Alternative> alternatives(const PipelineConfig& config, const Plan& plan) {
  std::vector<Alternative> result;
  for (int64_t replicas = 1; replicas <= plan.cluster.workers; ++replicas) {
    if (plan.cluster.workers % replicas != 0) continue;
    try {
      Alternative each{placed(config, plan, static_cast<size_t>(replicas))};
      each.step_s = step_seconds(each.placement, config, plan);
      for (Rank rank = 0; rank < plan.cluster.workers; ++rank)
        each.memory_bytes =
            std::max(each.memory_bytes, node_memory(each.placement, config, plan, rank));
      each.fits =
          plan.cluster.fabric != "virtual" || each.memory_bytes <= plan.cluster.memory_bytes;
      result.push_back(std::move(each));
    } catch (const ConfigError&) {
      continue;  // not as many stages or micro-batches as that would take
    }
  }
  return result;
}

Placement place_stages(const PipelineConfig& config, const Plan& plan) {
  if (!config.stages.automatic) return placed(config, plan, static_cast<size_t>(config.replicas));
  const std::vector<Alternative> all = alternatives(config, plan);
  if (all.empty())
    return placed(config, plan, static_cast<size_t>(config.replicas));  // says why not
  return std::min_element(all.begin(), all.end(),
                          [](const Alternative& a, const Alternative& b) {
                            return a.fits != b.fits ? a.fits : a.step_s < b.step_s;
                          })
      ->placement;
}

}  // namespace tutti
