// The dynamic programmes against trying every way, on chains up to 12 pieces and 4 nodes.
#include "strategies/pipeline/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/random.h"
#include "tests/support/thorough.h"

namespace tutti {
namespace {

constexpr size_t kMostPieces = 12, kMostNodes = 4;
constexpr double kNever = std::numeric_limits<double>::infinity();

// Every way to cut `pieces` pieces into `stages` stages.
template <class Visit>
void for_each_partition(size_t pieces, size_t stages, std::vector<Range>& chosen,
                        const Visit& visit) {
  const size_t begin = chosen.empty() ? 0 : chosen.back().end;
  if (stages == 1) {
    chosen.push_back({begin, pieces});
    visit(chosen);
    chosen.pop_back();
    return;
  }
  for (size_t end = begin + 1; end + stages - 1 <= pieces; ++end) {
    chosen.push_back({begin, end});
    for_each_partition(pieces, stages - 1, chosen, visit);
    chosen.pop_back();
  }
}

// Every way to give that many stages at least one of at most `workers` workers each.
template <class Visit>
void for_each_replication(size_t stages, size_t workers, std::vector<size_t>& chosen,
                          const Visit& visit) {
  if (chosen.size() == stages) return visit(chosen);
  const size_t left = stages - chosen.size() - 1;
  for (size_t replicas = 1; replicas + left <= workers; ++replicas) {
    chosen.push_back(replicas);
    for_each_replication(stages, workers - replicas, chosen, visit);
    chosen.pop_back();
  }
}

struct Chain {
  std::vector<PlanPiece> pieces;
  std::vector<double> speeds;
  double bandwidth = 1;
};

// Costs over three orders of magnitude, some of them zero, and nodes of different speeds.
Chain random_chain(uint64_t seed, size_t count) {
  Random random(seed, Stream::kTest, static_cast<uint32_t>(count));
  const auto number = [&] { return random.below(5) == 0 ? 0 : std::pow(10, 3 * random.uniform()); };
  Chain chain;
  for (size_t i = 0; i < count; ++i) chain.pieces.push_back({number(), number(), number()});
  for (size_t i = 0; i < kMostNodes; ++i) chain.speeds.push_back(0.25 + random.uniform());
  chain.bandwidth = std::pow(10, 2 * random.uniform() - 1);
  return chain;
}

TEST(Planner, IsOptimalOnAllChainsWithNodesOfDifferentSpeed) {
  for (size_t count = 1; count <= kMostPieces; ++count)
    for (size_t nodes = 1; nodes <= std::min(count, kMostNodes); ++nodes)
      for (uint64_t seed = 1; seed <= seeds(20, 100); ++seed) {
        const Chain chain = random_chain(seed, count);
        // Compute on a node of its speed, or what passes; and no node holds more than this.
        const double memory = 2000;
        const auto cost = [&](size_t stage, Range part) {
          double compute = 0, bytes = 0;
          for (size_t i = part.begin; i < part.end; ++i) {
            compute += chain.pieces[i].compute_s;
            bytes += chain.pieces[i].parameter_bytes;
          }
          if (bytes > memory) return kNever;
          return std::max(compute / chain.speeds[stage],
                          chain.pieces[part.end - 1].output_bytes / chain.bandwidth);
        };
        double best = kNever, best_sum = kNever;
        std::vector<Range> chosen;
        for_each_partition(count, nodes, chosen, [&](const std::vector<Range>& stages) {
          double largest = 0, sum = 0;
          for (size_t s = 0; s < stages.size(); ++s) {
            largest = std::max(largest, cost(s, stages[s]));
            sum += cost(s, stages[s]);
          }
          if (largest < best) best_sum = kNever;
          best = std::min(best, largest);
          if (largest == best) best_sum = std::min(best_sum, sum);
        });
        const auto plan = partition_chain(count, nodes, cost);
        ASSERT_EQ(plan.has_value(), best < kNever) << count << " on " << nodes << ", " << seed;
        if (!plan) continue;
        EXPECT_EQ(plan->bottleneck, best) << count << " on " << nodes << ", " << seed;
        double largest = 0;
        size_t begin = 0;
        for (size_t s = 0; s < nodes; ++s) {
          EXPECT_EQ(plan->stages[s].begin, begin);
          EXPECT_LT(begin, plan->stages[s].end);
          begin = plan->stages[s].end;
          largest = std::max(largest, cost(s, plan->stages[s]));
        }
        EXPECT_EQ(begin, count);
        EXPECT_EQ(largest, best);
      }
}

TEST(Planner, IsOptimalWithReplicasOfStages) {
  size_t with_replicas = 0, with_stages = 0;
  for (size_t count = 1; count <= kMostPieces; ++count)
    for (size_t workers = 1; workers <= kMostNodes; ++workers)
      for (uint64_t seed = 1; seed <= 10; ++seed) {
        const Chain chain = random_chain(seed, count);
        const Synchronise when = seed % 2 ? Synchronise::kMeanwhile : Synchronise::kAfterBatch;
        double best = kNever;
        std::vector<Range> cut;
        std::vector<size_t> given;
        for (size_t stages = 1; stages <= std::min(count, workers); ++stages)
          for_each_partition(count, stages, cut, [&](const std::vector<Range>& parts) {
            for_each_replication(stages, workers, given, [&](const std::vector<size_t>& replicas) {
              std::vector<ReplicatedStage> plan;
              for (size_t s = 0; s < stages; ++s) plan.push_back({parts[s], replicas[s]});
              best = std::min(best, bottleneck_of(chain.pieces, plan, chain.bandwidth, when));
            });
          });
        const ReplicatedPlan plan = plan_replicated(chain.pieces, workers, chain.bandwidth, when);
        ASSERT_EQ(plan.bottleneck_s, best) << count << " on " << workers << ", " << seed;
        EXPECT_EQ(bottleneck_of(chain.pieces, plan.stages, chain.bandwidth, when), best);
        size_t used = 0;
        for (const ReplicatedStage& stage : plan.stages) {
          used += stage.replicas;
          with_replicas += stage.replicas > 1;
        }
        EXPECT_LE(used, workers);
        with_stages += plan.stages.size() > 1;
      }
  // Both must be worth it now and then, or the comparison shows nothing.
  EXPECT_GT(with_replicas, 20U);
  EXPECT_GT(with_stages, 20U);
}

// Two pieces of 1 s each, and 10 s to begin a pass through a stage: one stage of both begins one
// pass and not two, and its copies take batches in turn.
TEST(Planner, BeginsOnePassInAStageOfManyPieces) {
  const std::vector<PlanPiece> pieces(
      2, {.compute_s = 1, .parameter_bytes = 0, .output_bytes = 0, .pass_s = 10});
  const std::vector<ReplicatedStage> apart = {{{0, 1}, 1}, {{1, 2}, 1}}, copied = {{{0, 2}, 2}};
  EXPECT_EQ(bottleneck_of(pieces, apart, 1, Synchronise::kMeanwhile), 11);
  EXPECT_EQ(bottleneck_of(pieces, copied, 1, Synchronise::kMeanwhile), 6);
  const ReplicatedPlan plan = plan_replicated(pieces, 2, 1, Synchronise::kMeanwhile);
  EXPECT_EQ(plan.bottleneck_s, 6);
  EXPECT_EQ(plan.stages.size(), 1u);
}

TEST(Planner, SaysWhenThereIsNoWay) {
  EXPECT_FALSE(partition_chain(2, 3, [](size_t, Range) { return 1.0; }).has_value());
  EXPECT_FALSE(partition_chain(3, 2, [](size_t, Range) { return kNever; }).has_value());
}

}  // namespace
}  // namespace tutti
