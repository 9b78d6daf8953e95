#include "strategies/pipeline/planner.h"

#include <algorithm>
#include <limits>

#include "core/error.h"

namespace tutti {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// The best way to make stages of the first pieces, and where its last stage begins.
struct Best {
  double largest = kNever, sum = kNever;
  size_t begin = 0;
  bool better_than(const Best& other) const {
    return largest < other.largest || (largest == other.largest && sum < other.sum);
  }
};

double stage_seconds(std::span<const PlanPiece> pieces, Range stage, size_t replicas,
                     double bandwidth, Synchronise when) {
  double compute_s = pieces[stage.begin].pass_s, parameter_bytes = 0;
  for (size_t i = stage.begin; i < stage.end; ++i) {
    compute_s += pieces[i].compute_s;
    parameter_bytes += pieces[i].parameter_bytes;
  }
  const auto r = static_cast<double>(replicas);
  const double sum_s = 2 * (r - 1) / r * parameter_bytes / bandwidth;
  return when == Synchronise::kMeanwhile ? std::max(compute_s, sum_s) / r : compute_s / r + sum_s;
}

double passing_seconds(const PlanPiece& last, double bandwidth) {
  return 2 * last.output_bytes / bandwidth;
}

// The best plan for the first pieces on some workers, and its last stage.
struct Choice {
  double bottleneck = kNever;
  size_t begin = 0, replicas = 0;
};

}  // namespace

std::optional<ChainPartition> partition_chain(size_t pieces, size_t stages, const StageCost& cost) {
  if (stages == 0 || stages > pieces) return std::nullopt;
  // best[s][j]: the first j pieces as s stages.
  std::vector<std::vector<Best>> best(stages + 1, std::vector<Best>(pieces + 1));
  best[0][0] = {.largest = 0, .sum = 0, .begin = 0};
  for (size_t s = 1; s <= stages; ++s)
    for (size_t end = s; end <= pieces; ++end)
      for (size_t begin = s - 1; begin < end; ++begin) {
        const Best& before = best[s - 1][begin];
        if (before.largest == kNever) continue;
        const double own = cost(s - 1, {begin, end});
        const Best candidate{std::max(before.largest, own), before.sum + own, begin};
        if (candidate.better_than(best[s][end])) best[s][end] = candidate;
      }
  if (best[stages][pieces].largest == kNever) return std::nullopt;
  ChainPartition result{.stages = std::vector<Range>(stages),
                        .bottleneck = best[stages][pieces].largest};
  for (size_t s = stages, end = pieces; s > 0; --s) {
    const size_t begin = best[s][end].begin;
    result.stages[s - 1] = {begin, end};
    end = begin;
  }
  return result;
}

double bottleneck_of(std::span<const PlanPiece> pieces, std::span<const ReplicatedStage> stages,
                     double bandwidth, Synchronise when) {
  double largest = 0;
  for (const ReplicatedStage& stage : stages) {
    largest =
        std::max(largest, stage_seconds(pieces, stage.pieces, stage.replicas, bandwidth, when));
    if (stage.pieces.end < pieces.size())
      largest = std::max(largest, passing_seconds(pieces[stage.pieces.end - 1], bandwidth));
  }
  return largest;
}

ReplicatedPlan plan_replicated(std::span<const PlanPiece> pieces, size_t workers, double bandwidth,
                               Synchronise when) {
  TUTTI_CHECK(!pieces.empty() && workers > 0);
  // best[j][w]: the first j pieces on at most w workers.
  std::vector<std::vector<Choice>> best(pieces.size() + 1, std::vector<Choice>(workers + 1));
  for (size_t w = 0; w <= workers; ++w) best[0][w].bottleneck = 0;
  for (size_t end = 1; end <= pieces.size(); ++end)
    for (size_t w = 1; w <= workers; ++w)
      for (size_t begin = 0; begin < end; ++begin)
        for (size_t replicas = 1; replicas <= w; ++replicas) {
          double largest = std::max(best[begin][w - replicas].bottleneck,
                                    stage_seconds(pieces, {begin, end}, replicas, bandwidth, when));
          if (begin > 0) largest = std::max(largest, passing_seconds(pieces[begin - 1], bandwidth));
          if (largest < best[end][w].bottleneck) best[end][w] = {largest, begin, replicas};
        }
  ReplicatedPlan plan{.stages = {}, .bottleneck_s = best[pieces.size()][workers].bottleneck};
  for (size_t end = pieces.size(), w = workers; end > 0;) {
    const Choice& choice = best[end][w];
    plan.stages.push_back({{choice.begin, end}, choice.replicas});
    end = choice.begin;
    w -= choice.replicas;
  }
  std::reverse(plan.stages.begin(), plan.stages.end());
  return plan;
}

}  // namespace tutti
