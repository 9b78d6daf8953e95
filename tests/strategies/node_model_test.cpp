// A node has the buffers that its plan gives it and no others, with the values of the whole model.
#include "strategies/node_model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/shard.h"
#include "testbed/variants.h"
#include "tests/support/jobs.h"

namespace tutti {
namespace {

using namespace testing_support;

constexpr uint64_t kSeed = 3;

NodeModel model_of_node(const Plan& plan, Rank rank) {
  return NodeModel(plan, rank, {.maker = kCostModels, .options = {.seed = kSeed}});
}

std::vector<float> initial(const Architecture& architecture) {
  std::vector<float> values(architecture.parameter_count);
  initialise(architecture, kSeed, values);
  return values;
}

Resolved four_nodes(const Settings& settings) {
  Job job = load_job("", small_mlp("[40, 30, 20, 10]") + Settings{"cluster.workers=4"} + settings);
  return resolve(job);
}

Rank first_server(const Plan& plan) { return static_cast<Rank>(plan.workers); }

constexpr size_t kPair = 2 * sizeof(float);  // a parameter and its gradient

TEST(NodeModel, OfAPipelineHasTheLayersOfItsStageAndNoOthers) {
  for (const char* schedule : {"1f1b", "gpipe", "interleaved", "asynchronous"}) {
    const Resolved resolved = four_nodes(
        {"strategy.kind=pipeline", fmt::format("strategy.schedule={}", schedule),
         schedule == std::string("interleaved") ? "cluster.workers=2" : "cluster.workers=4"});
    const Architecture& whole = resolved.architecture;
    size_t bytes = 0;
    for (Rank rank = 0; rank < resolved.plan.workers; ++rank) {
      NodeModel model = model_of_node(resolved.plan, rank);
      size_t own = 0;
      for (const Range layers : resolved.plan.nodes[static_cast<size_t>(rank)].layers)
        own += stage_of(whole, layers).parameter_count;
      EXPECT_EQ(model.bytes(), own * kPair) << schedule << ", rank " << rank;
      EXPECT_LT(own, whole.parameter_count);
      EXPECT_FALSE(model.is_whole());
      EXPECT_THROW(model.whole(), std::logic_error);
      bytes += model.bytes();
    }
    EXPECT_EQ(bytes, whole.parameter_count * kPair) << schedule;
  }
}

TEST(NodeModel, StartsAsTheWholeModelDoesAndBecomesIt) {
  const Resolved resolved = four_nodes({"strategy.kind=pipeline"});
  const Architecture& whole = resolved.architecture;
  const std::vector<float> expected = initial(whole);
  for (Rank rank = 0; rank < resolved.plan.workers; ++rank) {
    NodeModel model = model_of_node(resolved.plan, rank);
    const Range layers = resolved.plan.nodes[static_cast<size_t>(rank)].layers.at(0);
    const Architecture own = stage_of(whole, layers);
    const auto begin = expected.begin() + static_cast<ptrdiff_t>(own.place.value);
    const auto is_own = [&](std::span<const float> values) {
      return values.size() == own.parameter_count &&
             std::equal(values.begin(), values.end(), begin);
    };
    EXPECT_TRUE(is_own(model.parameters_of(layers)));
    EXPECT_TRUE(is_own(model.stage(layers)->parameters()));
    const Range other{layers.begin == 0 ? whole.layers.size() - 1 : 0,
                      layers.begin == 0 ? whole.layers.size() : 1};
    EXPECT_THROW(model.stage(other), std::logic_error) << "another node's layers";
    const std::span<float> all = model.make_whole();
    EXPECT_EQ(model.bytes(), whole.parameter_count * sizeof(float)) << "no gradients any more";
    EXPECT_TRUE(is_own(all.subspan(own.place.value, own.parameter_count)));
    EXPECT_EQ(model.whole().parameters().data(), all.data());
    EXPECT_EQ(model.stage(layers)->parameters().data(), all.data() + own.place.value);
  }
}

class NoGroup : public ShardGroup {
 public:
  void sum(std::span<float>) override {}
  void maximum(std::span<float>) override {}
};

TEST(NodeModel, OfAShardHasThatPartOfTheLayersAndPutsItInItsPlace) {
  const Resolved resolved = four_nodes({"strategy.kind=tensor", "cluster.workers=2"});
  const Architecture& whole = resolved.architecture;
  const Range all{0, whole.layers.size()};
  const std::vector<float> expected = initial(whole);
  for (Rank rank = 0; rank < 2; ++rank) {
    NodeModel model = model_of_node(resolved.plan, rank);
    EXPECT_EQ(model.bytes(), 0u);
    NoGroup group;
    const auto index = static_cast<size_t>(rank);
    const auto shard = model.shard(all, index, 2, group);
    const size_t own = shard_of(whole, index, 2).parameter_count;
    EXPECT_EQ(model.bytes(), own * kPair);
    EXPECT_LT(own, whole.parameter_count);
    const std::span<float> values = model.make_whole();
    size_t same = 0;  // what the other shard has is not known here, and what is not split is twice
    for (size_t i = 0; i < expected.size(); ++i) same += values[i] == expected[i];
    EXPECT_GE(same, own);
  }
}

TEST(NodeModel, OfAServerOrSchedulerTakesNoMemory) {
  for (const char* kind : {"parameter_server", "federated_averaging"}) {
    const Resolved resolved = four_nodes({fmt::format("strategy.kind={}", kind)});
    ASSERT_FALSE(resolved.plan.nodes.back().has_model) << kind;
    NodeModel server = model_of_node(resolved.plan, first_server(resolved.plan));
    EXPECT_EQ(server.bytes(), 0u) << kind;
    const size_t all = resolved.architecture.parameter_count;
    EXPECT_EQ(model_of_node(resolved.plan, 0).bytes(), all * kPair) << kind;
  }
}

// A shard's range may begin and end within a parameter.
TEST(NodeModel, KnowsTheInitialValuesOfEveryRange) {
  const Resolved resolved = four_nodes({"strategy.kind=parameter_server", "strategy.servers=3"});
  const NodeModel server = model_of_node(resolved.plan, first_server(resolved.plan));
  const std::vector<float> expected = initial(resolved.architecture);
  const size_t count = expected.size();
  for (const Range range : {Range{0, count}, Range{0, 1}, Range{count - 1, count},
                            Range{count / 3, 2 * count / 3}, Range{7, 7}, Range{5, count - 3}}) {
    std::vector<float> values(range.size());
    server.initial_values(range, values);
    EXPECT_TRUE(std::equal(values.begin(), values.end(),
                           expected.begin() + static_cast<ptrdiff_t>(range.begin)))
        << range.begin << " to " << range.end;
  }
}

// What is predicted for a node covers at least its buffers, in every variant of the catalog.
TEST(NodeModel, FitsIntoThePredictedMemoryOfEveryNode) {
  const Job task = load_job("", small_mlp("[40, 30, 20, 10]") +
                                    Settings{"cluster.fabric=virtual", "cluster.workers=4",
                                             "cluster.racks=2"});
  size_t nodes = 0;
  for (const ComparedJob& each : compared_jobs(task, {"all"})) {
    if (!each.refusal.empty()) continue;
    const Resolved resolved = resolve(each.job);
    for (Rank rank = 0; rank < std::ssize(resolved.plan.nodes); ++rank, ++nodes) {
      const NodePlan& plan = resolved.plan.nodes[static_cast<size_t>(rank)];
      const NodeModel model = model_of_node(resolved.plan, rank);
      EXPECT_LE(static_cast<double>(model.bytes()), plan.memory_bytes)
          << each.job.name << ", rank " << rank;
      EXPECT_EQ(model.bytes() > 0, plan.has_model && !plan.layers.empty())
          << each.job.name << ", rank " << rank;
      EXPECT_EQ(plan.has_model, rank < resolved.plan.workers && plan.role != "aggregator")
          << each.job.name << ", rank " << rank;
    }
  }
  EXPECT_GT(nodes, 4 * strategy_catalog().size());
}

}  // namespace
}  // namespace tutti
