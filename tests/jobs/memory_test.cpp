// What does not fit is refused before anything starts: with the largest batch of a schedule, and on
// the node that has too little.
#include <gtest/gtest.h>

#include <algorithm>

#include "jobs/resolve.h"
#include "tests/support/jobs.h"

namespace tutti {
namespace {

using namespace testing_support;

Settings virtual_mlp(const std::string& strategy) {
  return small_mlp("[64, 64, 64]") + Settings{"cluster.fabric=virtual", "cluster.workers=4",
                                              "task.epochs=4", "strategy.kind=" + strategy};
}

std::optional<Shortage> shortage(const Settings& settings) {
  const Job job = load_job("", settings);
  return shortage_of_memory(job, resolve(job).plan);
}

double needed(const Settings& settings) {
  const Job job = load_job("", settings);
  return resolve(job).plan.most_memory_bytes();
}

std::string refused(const Settings& settings) {
  const Job job = load_job("", settings);
  const Plan plan = resolve(job).plan;
  try {
    require_memory(job, plan);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Memory, OfAGrowingBatchIsThatOfTheLargest) {
  const Settings job = virtual_mlp("allreduce");
  const Settings grows = {"optimizer.schedule=grow_batch", "optimizer.step_factor=0.5"};
  // 37, 74, 148, 296 samples; and no more than there are, 389.
  EXPECT_EQ(needed(job + grows), needed(job + Settings{"task.global_batch=296"}));
  EXPECT_EQ(needed(job + grows + Settings{"task.epochs=9"}),
            needed(job + Settings{"task.global_batch=389"}));
  EXPECT_GT(needed(job + grows), needed(job));
}

// The record of a simulation has the memory of each node, not that of the fullest for all.
TEST(Memory, OfNodesWithDifferentPartsIsToldApart) {
  const auto by_node = [](const Settings& settings) {
    const Job job = load_job("", settings);
    std::vector<double> bytes;
    for (const NodePlan& node : resolve(job).plan.nodes) bytes.push_back(node.memory_bytes);
    return bytes;
  };
  const std::vector<Settings> cut = {virtual_mlp("pipeline"),
                                     virtual_mlp("early_exit") + Settings{"strategy.devices=2"}};
  for (const Settings& job : cut) {
    const std::vector<double> parts = by_node(job);
    ASSERT_EQ(parts.size(), 4u);
    EXPECT_EQ(*std::max_element(parts.begin(), parts.end()), needed(job));
    EXPECT_LT(*std::min_element(parts.begin(), parts.end()), needed(job));
  }
  const std::vector<double> two =
      by_node(virtual_mlp("parameter_server") + Settings{"strategy.servers=2"});
  ASSERT_EQ(two.size(), 6u);
  EXPECT_EQ(two[3], two[0]);
  EXPECT_NE(two[4], two[0]);
  const std::vector<double> four =
      by_node(virtual_mlp("parameter_server") + Settings{"strategy.servers=4"});
  EXPECT_LT(four[7], two[5]);
}

TEST(Memory, IsThatOfEachNode) {
  const Settings job = virtual_mlp("allreduce");
  const auto bytes = static_cast<int64_t>(needed(job));
  const Settings twice = {"cluster.memory=" + std::to_string(2 * bytes) + " B"};
  EXPECT_FALSE(shortage(job + twice));
  EXPECT_FALSE(shortage(job + twice + Settings{"cluster.memory_factors=[1, 1, 0.51, 1]"}));
  const auto third = shortage(job + twice + Settings{"cluster.memory_factors=[1, 1, 0.25, 1]"});
  ASSERT_TRUE(third);
  EXPECT_EQ(third->worker, 2);
  EXPECT_EQ(third->there_bytes, static_cast<double>(2 * bytes) * 0.25);
  const std::string why = refused(job + twice + Settings{"cluster.memory_factors=[1, 1, 0.25, 1]"});
  EXPECT_NE(why.find("worker 2 "), std::string::npos) << why;
  EXPECT_NE(why.find("cluster.memory_factors"), std::string::npos) << why;
}

// The first stage goes to a node with little memory: the planner gives it fewer layers.
TEST(Memory, DecidesWhereAPipelineIsCut) {
  const Settings job = small_mlp("[64, 64, 64, 64, 64, 64]") +
                       Settings{"cluster.fabric=virtual", "cluster.workers=2",
                                "strategy.kind=pipeline", "strategy.micro_batches=4"};
  const auto layers_of_first = [&](const Settings& more) {
    return resolve(load_job("", job + more)).plan.nodes.at(0).layers.at(0).size();
  };
  const auto bytes = static_cast<int64_t>(needed(job));
  const Settings enough = {"cluster.memory=" + std::to_string(2 * bytes) + " B"};
  const Settings uneven = enough + Settings{"cluster.memory_factors=[0.3, 1]"};
  EXPECT_LT(layers_of_first(uneven), layers_of_first(enough));
  EXPECT_FALSE(shortage(job + uneven));
}

TEST(Memory, FactorsAreOnePerWorker) {
  EXPECT_NE(refusal(virtual_mlp("allreduce") + Settings{"cluster.memory_factors=[1, 1]"})
                .find("cluster.memory_factors has 2 entries"),
            std::string::npos);
}

}  // namespace
}  // namespace tutti
