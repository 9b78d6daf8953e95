#include "strategies/pipeline/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "fabric/capabilities.h"
#include "models/shard.h"
#include "models/stage.h"
#include "strategies/pipeline/copies_plan.h"
#include "strategies/pipeline/planner.h"
#include "strategies/pipeline/shard_costs.h"
#include "strategies/pipeline/stage_costs.h"

namespace tutti {
namespace {

bool is_interleaved(const PipelineConfig& config) {
  return config.schedule == PipelineSchedule::kInterleaved;
}

// How many stages the settings ask for.
size_t stage_count(const PipelineConfig& config, size_t nodes) {
  if (!config.stages.places.empty()) return config.stages.places.size() + 1;
  if (config.stages.parts > 0) return static_cast<size_t>(config.stages.parts);
  return is_interleaved(config) && nodes > 1 ? 2 * nodes : nodes;
}

// The nodes of each stage, as given; nothing where each has one.
std::vector<size_t> given_copies(const PipelineConfig& config, size_t nodes) {
  if (!config.has_copies()) return {};
  std::vector<size_t> copies(config.copies.places.begin(), config.copies.places.end());
  const auto each = static_cast<size_t>(config.copies.parts);
  if (copies.empty())
    copies.assign(config.stages.parts > 0 || !config.stages.places.empty()
                      ? stage_count(config, nodes)
                      : std::max<size_t>(1, nodes / each),
                  each);
  size_t sum = 0;
  for (const size_t count : copies) sum += count;
  const bool same = config.stages.parts == 0 && config.stages.places.empty();
  if (sum != nodes || (!same && copies.size() != stage_count(config, nodes)))
    throw ConfigError(
        "strategy.copies",
        fmt::format("strategy.copies puts {} stages on {} nodes, but cluster.workers = {} and "
                    "strategy.stages makes {} stages; name as many nodes for each stage as there "
                    "are workers in all",
                    copies.size(), sum, nodes, same ? copies.size() : stage_count(config, nodes)));
  return copies;
}

void check_count(const PipelineConfig& config, const PlanInput& input, const Placement& placement,
                 size_t stages) {
  const size_t nodes = placement.copies.empty() ? placement.nodes : placement.copies.size();
  const bool fits = is_interleaved(config) && nodes > 1 ? stages % nodes == 0 : stages == nodes;
  if (!fits)
    throw ConfigError(
        "strategy.stages",
        fmt::format(
            "strategy.stages makes {} stages, but cluster.workers = {} and {} = {}{} leave {} "
            "nodes for a pipeline; {}",
            stages, input.cluster.workers, config.replicas_key(), placement.replicas,
            config.shards == 1 ? "" : fmt::format(" and strategy.shards = {}", placement.shards),
            nodes,
            is_interleaved(config) && nodes > 1
                ? "an interleaved one needs a multiple of them"
                : fmt::format("set cluster.workers = {}",
                              stages * static_cast<size_t>(input.cluster.workers) / nodes)));
  const size_t most = shard_cuts(input.architecture, placement.shards).size() + 1;
  if (stages > most)
    throw ConfigError(
        "strategy.stages",
        fmt::format(
            "strategy.kind = \"{}\" needs {} stages here, but task.model = \"{}\" has at "
            "most {}{}: it can be cut {}; use fewer workers, more {} or a deeper model",
            word_of(config.kind), stages, input.task.model.kind(), most,
            placement.shards > 1 ? " outside of layers that are split" : "",
            cuts_in_words(input.architecture, shard_cuts(input.architecture, placement.shards)),
            config.replicas_key()));
}

// Refuses what cannot be split into as many shards, or would not be the same if it were.
void check_shards(const PipelineConfig& config, const PlanInput& input, size_t shards) {
  if (shards == 1) return;
  if (input.task.deterministic)
    throw ConfigError("task.deterministic",
                      fmt::format("task.deterministic promises the same bits for any number of "
                                  "workers, but within a layer of {} shards additions are in "
                                  "another order; set it to false, or strategy.shards = 1",
                                  shards));
  if (needs_tensors(input.optimizer))
    throw ConfigError("optimizer.kind",
                      fmt::format("optimizer.kind = \"{}\" needs whole tensors, of which each of "
                                  "the {} shards of strategy.kind = \"{}\" has a part; use adam, "
                                  "or strategy.shards = 1",
                                  input.optimizer.kind(), shards, word_of(config.kind)));
  for (const Layer& layer : input.architecture.layers)
    if (layer.kind == LayerKind::kAttention && layer.groups % static_cast<int64_t>(shards) != 0)
      throw ConfigError("task.model.heads",
                        fmt::format("task.model.heads = {} cannot be shared by {} shards alike; "
                                    "choose a number of shards that divides it",
                                    layer.groups, shards));
  if (split_regions(input.architecture, shards).empty())
    throw ConfigError("strategy.kind",
                      fmt::format("task.model = \"{}\" has no layers that could be split into {} "
                                  "shards; use fewer, or a wider model",
                                  input.task.model.kind(), shards));
}

// What the node with least memory has: of those that are the `node`th of their replica, and of
// those that the stage comes to.
double room_on(const Placement& placement, const ClusterConfig& cluster, size_t node) {
  double least = std::numeric_limits<double>::infinity();
  if (!capabilities_of(cluster).declared_memory) return least;
  for (size_t replica = 0; replica < placement.replicas; ++replica)
    for (size_t shard = 0; shard < placement.shards; ++shard) {
      const size_t rank = (replica * placement.nodes + node) * placement.shards + shard;
      least = std::min(least, memory_of(cluster, static_cast<int64_t>(rank)));
    }
  return least;
}

double room_for(const Placement& placement, const ClusterConfig& cluster,
                const PipelineShape& shape, size_t stage) {
  double least = std::numeric_limits<double>::infinity();
  for (size_t copy = 0; copy < shape.copies_of(stage); ++copy)
    least = std::min(least, room_on(placement, cluster, shape.node_of(stage, copy)));
  return least;
}

// What the pieces between neighbouring cuts cost as a part of each stage. A stage costs what its
// pieces do; that what passes between them is counted twice in its memory keeps to the safe side.
class PieceCosts {
 public:
  PieceCosts(const PipelineConfig& config, const PlanInput& input, const Placement& placement,
             size_t stages)
      : pieces_(
            stages_between(input.architecture, shard_cuts(input.architecture, placement.shards))) {
    PipelineShape shape = placement.shape(0);
    shape.stages = stages;
    copies_ = placement.copies;
    const double samples = micro_batch_samples(input, placement.micro_batches);
    for (size_t stage = 0; stage < stages; ++stage) {
      const size_t in_flight =
          most_in_flight(own_tasks(placement.schedule, shape, shape.node_of(stage, 0)), stage);
      Placement trial = placement;
      trial.stages.resize(stages);
      room_bytes_.push_back(room_for(placement, input.cluster, shape, stage));
      std::vector<Cost> costs;
      for (const Range layers : pieces_) {
        trial.stages[stage] = layers;
        costs.push_back(
            {times_of(trial, config, input, stage),
             stage_memory(config, input, part_of_stage(trial, input.architecture, stage, 0),
                          in_flight, samples)});
      }
      costs_.push_back(std::move(costs));
    }
  }

  const std::vector<Range>& pieces() const { return pieces_; }

  // Seconds for a micro-batch; infinity where the stage does not fit, if that counts.
  double of(size_t stage, Range part, bool limited) const {
    double compute_s = costs_[stage][part.begin].times.pass_s, bytes = 0;  // once for a stage
    for (size_t i = part.begin; i < part.end; ++i) {
      const Cost& cost = costs_[stage][i];
      compute_s += cost.times.forward_s + cost.times.backward_s - cost.times.pass_s;
      bytes += cost.memory_bytes;
    }
    if (limited && bytes > room_bytes_[stage]) return std::numeric_limits<double>::infinity();
    if (!copies_.empty()) compute_s /= static_cast<double>(copies_[stage]);
    if (part.end == pieces_.size()) return compute_s;
    return std::max(compute_s, 2 * costs_[stage][part.end - 1].times.transfer_s);
  }

 private:
  struct Cost {
    StageTimes times;
    double memory_bytes;
  };
  std::vector<Range> pieces_;
  std::vector<double> room_bytes_;  // by stage
  std::vector<size_t> copies_;
  std::vector<std::vector<Cost>> costs_;  // by stage and piece
};

// The stages with the smallest largest time of a micro-batch, on the nodes that they come to.
std::vector<Range> balanced_stages(const PipelineConfig& config, const PlanInput& input,
                                   const Placement& placement, size_t count) {
  const PieceCosts costs(config, input, placement, count);
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

size_t default_micro_batches(const PipelineConfig& config, const PlanInput& input, size_t nodes,
                             size_t replicas) {
  // Nobody waits for a single stage; parts of its batch would only be summed more often.
  if (nodes == 1) return 1;
  const auto most = static_cast<size_t>(input.task.global_batch) / replicas;
  const size_t wanted = std::max<size_t>(1, std::min(4 * nodes, most));
  return is_interleaved(config) && wanted > nodes ? wanted / nodes * nodes : wanted;
}

void choose_micro_batches(const PipelineConfig& config, const PlanInput& input,
                          Placement& placement) {
  if (placement.asynchronous()) return;  // batches are not cut
  if (input.task.deterministic) {
    placement.micro_batches = static_cast<size_t>(input.task.lanes);
  } else {
    const size_t each =
        config.micro_batches > 0
            ? static_cast<size_t>(config.micro_batches)
            : default_micro_batches(config, input, placement.nodes, placement.replicas);
    placement.micro_batches = each * placement.replicas;
  }
  if (placement.micro_batches > static_cast<size_t>(input.task.global_batch) &&
      !input.task.deterministic)
    throw ConfigError(
        "strategy.micro_batches",
        fmt::format("strategy.micro_batches = {} in {} replicas are more than the "
                    "samples of task.global_batch = {}; lower the one or raise the "
                    "other",
                    config.micro_batches, placement.replicas, input.task.global_batch));
  for (size_t replica = 0; replica < placement.replicas; ++replica) {
    const size_t own = placement.micro_batches_of(replica).size();
    if (own == 0 || (is_interleaved(config) && own % placement.nodes != 0))
      throw ConfigError(
          input.task.deterministic ? "task.lanes" : "strategy.micro_batches",
          fmt::format("strategy.schedule = \"{}\" sends {} micro-batches through the {} nodes of "
                      "replica {}; it takes at least one{}: set {}",
                      word_of(config.schedule), own, placement.nodes, replica,
                      is_interleaved(config) ? " and a multiple of the nodes" : "",
                      input.task.deterministic ? "task.lanes" : "strategy.micro_batches"));
  }
}

Placement placed(const PipelineConfig& config, const PlanInput& input, size_t replicas,
                 size_t shards) {
  const auto workers = static_cast<size_t>(input.cluster.workers);
  if (workers % (replicas * shards) != 0)
    throw ConfigError("strategy.shards",
                      fmt::format("{} = {} times strategy.shards = {} does not divide "
                                  "cluster.workers = {}; every stage needs as many nodes",
                                  config.replicas_key(), replicas, shards, workers));
  check_shards(config, input, shards);
  Placement placement;
  placement.schedule = config.schedule;
  placement.replicas = replicas;
  placement.shards = shards;
  placement.nodes = workers / (replicas * shards);
  if (config.copies.automatic) {
    choose_micro_batches(config, input, placement);
    return plan_copies(config, input, placement);
  }
  placement.copies = given_copies(config, placement.nodes);
  const size_t count =
      placement.copies.empty() ? stage_count(config, placement.nodes) : placement.copies.size();
  check_count(config, input, placement, count);
  choose_micro_batches(config, input, placement);
  placement.stages = config.stages.places.empty()
                         ? balanced_stages(config, input, placement, count)
                         : given_stages(input.architecture, shard_cuts(input.architecture, shards),
                                        config.stages.places, "strategy.stages");
  return placement;
}

// The sizes to try: the given one, or all that divide the workers.
std::vector<size_t> sizes_to_try(int64_t given, bool automatic, int64_t workers) {
  if (!automatic) return {static_cast<size_t>(given)};
  std::vector<size_t> sizes;
  for (int64_t size = 1; size <= workers; ++size)
    if (workers % size == 0) sizes.push_back(static_cast<size_t>(size));
  return sizes;
}

}  // namespace

Group Placement::holders(size_t stage, size_t shard, Rank me) const {
  Group group{.ranks = {}, .index = 0, .racks = {}};
  for (size_t replica = 0; replica < replicas; ++replica)
    for (size_t copy = 0; copy < shape(replica).copies_of(stage); ++copy) {
      group.ranks.push_back(rank_of(replica, stage, shard, copy));
      if (group.ranks.back() == me) group.index = group.size() - 1;
    }
  return group;
}

Alternative estimated(Placement placement, const PipelineConfig& config, const PlanInput& input) {
  Alternative result{std::move(placement)};
  result.step_s = step_seconds(result.placement, config, input);
  // Replicas are alike, and the first shard of a stage has the most.
  for (size_t node = 0; node < result.placement.nodes; ++node) {
    const double bytes = node_memory(result.placement, config, input,
                                     static_cast<Rank>(node * result.placement.shards));
    result.memory_bytes = std::max(result.memory_bytes, bytes);
    result.fits = result.fits && bytes <= room_on(result.placement, input.cluster, node);
  }
  return result;
}

std::vector<Alternative> alternatives(const PipelineConfig& config, const PlanInput& input) {
  const int64_t workers = input.cluster.workers;
  std::vector<Alternative> result;
  for (const size_t shards : sizes_to_try(config.shards, config.shards == 0, workers))
    for (const size_t replicas :
         sizes_to_try(config.replicas, config.replicas == 0 || config.stages.automatic, workers)) {
      try {
        result.push_back(estimated(placed(config, input, replicas, shards), config, input));
      } catch (const ConfigError&) {
        continue;  // not as many shards, stages or micro-batches as that would take
      }
    }
  return result;
}

Placement place_stages(const PipelineConfig& config, const PlanInput& input) {
  const auto given = [&] {
    return placed(config, input, static_cast<size_t>(std::max<int64_t>(1, config.replicas)),
                  static_cast<size_t>(std::max<int64_t>(1, config.shards)));
  };
  if (!config.is_automatic()) return given();
  const std::vector<Alternative> all = alternatives(config, input);
  if (all.empty()) return given();  // says why not
  return std::min_element(all.begin(), all.end(),
                          [](const Alternative& a, const Alternative& b) {
                            return a.fits != b.fits ? a.fits : a.step_s < b.step_s;
                          })
      ->placement;
}

}  // namespace tutti
