// Buckets travel while the backward pass still computes earlier layers: in virtual time that can be
// computed by hand.
#include <gtest/gtest.h>

#include "tests/support/jobs.h"

namespace tutti {
namespace {

using namespace testing_support;

constexpr double kBytesPerSecond = 125e6;
constexpr int kSteps = 4;
// Weights and biases of the last layer, ready first, and of the one before it.
constexpr double kLastBytes = (2048 * 64 + 64) * 4;
constexpr double kMiddleBytes = (16 * 2048 + 2048) * 4;

// Nodes so slow that computing a layer takes far longer than sending the one above it.
Settings two_slow_nodes(const std::string& topology, const std::string& bucket) {
  return {"task.data.kind=synthetic-classes",
          "task.data.samples=400",
          "task.data.features=256",
          "task.data.classes=64",
          "task.model.kind=mlp",
          "task.model.hidden=[16, 2048]",
          "task.global_batch=32",
          "task.max_steps=" + std::to_string(kSteps),
          "strategy.kind=allreduce",
          "strategy.topology=" + topology,
          "strategy.bucket=" + bucket,
          "cluster.fabric=virtual",
          "cluster.workers=2",
          "cluster.speed=10 MFLOP/s",
          "cluster.bandwidth=1 Gbit/s",
          "cluster.latency=1 us",
          "cluster.cost_only=true"};
}

double seconds(const Settings& settings) {
  const RunRecord record = run(settings);
  EXPECT_EQ(record.status, RunStatus::kDone) << record.error;
  return record.nodes.empty() ? 0 : record.nodes.front().total_s;
}

class Overlap : public testing::TestWithParam<std::string> {};

// Bytes whose time is saved. Between two nodes a ring and a butterfly send half of a bucket there
// and half back, all_to_all all at once, a tree all of it one way and then back. A round starts
// when a layer is done: both of the last layer's are over before the first layer is, but only one
// of the middle layer's.
double hidden_bytes(const std::string& topology) {
  if (topology == "all_to_all") return kLastBytes + kMiddleBytes;
  if (topology == "tree") return 2 * kLastBytes + kMiddleBytes;
  return kLastBytes + kMiddleBytes / 2;
}

TEST_P(Overlap, SavesTheTimeOfTheBucketsThatAreReadyEarly) {
  const double together = seconds(two_slow_nodes(GetParam(), "1 GB"));
  const double overlapped = seconds(two_slow_nodes(GetParam(), "64 kB"));
  const double saved = (together - overlapped) / kSteps;
  const double sent = hidden_bytes(GetParam()) / kBytesPerSecond;
  // A flow gets 95.7 % of a link (fabric/virtual/platform.cpp); the rest of the bound is latencies.
  EXPECT_GT(saved, sent);
  EXPECT_LT(saved, sent / 0.957 * 1.1);
}

INSTANTIATE_TEST_SUITE_P(Messages, Overlap,
                         testing::Values("ring", "butterfly", "tree", "all_to_all"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tutti
