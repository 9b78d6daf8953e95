// Gradients exchanged in buckets: how they are cut, and that a sum in many buckets is the sum.
#include <gtest/gtest.h>

#include <algorithm>

#include "collectives/topology.h"
#include "strategies/allreduce.h"
#include "tests/models/model_of.h"
#include "tests/strategies/equivalence.h"
#include "tests/support/rounding.h"

namespace tutti {
namespace {

using namespace testing_support;

std::vector<Architecture> models_to_cut() {
  return {make_architecture(model_of("logistic"), {9}, 4),
          make_architecture(model_of("mlp", {{"hidden", {40, 3, 25}}}), {16}, 4),
          make_architecture(model_of("lenet"), {1, 28, 28}, 10),
          make_architecture(model_of("resnet20"), {3, 32, 32}, 10),
          make_architecture(model_of("transformer"), {64}, 90)};
}

// From the last parameter to the first, without hole or overlap, at borders of parameters. Each has
// at least the size that was asked for, which only the last one may miss, and would have had less
// without its last parameter.
TEST(Buckets, CoverEveryParameterOnceFromTheLastLayersOn) {
  for (const Architecture& architecture : models_to_cut())
    for (const double bytes : {4.0, 64.0, 1000.0, 4096.0, 65536.0, 1048576.0, 1e9}) {
      SCOPED_TRACE(architecture.kind + ", " + std::to_string(bytes) + " bytes");
      const std::vector<Range> buckets = make_buckets(architecture, bytes);
      ASSERT_FALSE(buckets.empty());
      size_t end = architecture.parameter_count;
      for (const Range bucket : buckets) {
        EXPECT_EQ(bucket.end, end);
        ASSERT_LT(bucket.begin, bucket.end);
        end = bucket.begin;
        const auto first = std::find_if(
            architecture.parameters.begin(), architecture.parameters.end(),
            [&](const Parameter& parameter) { return parameter.range.begin == bucket.begin; });
        ASSERT_NE(first, architecture.parameters.end()) << "cuts a parameter at " << bucket.begin;
        const auto size = static_cast<double>(bucket.size() * sizeof(float));
        EXPECT_TRUE(size >= bytes || bucket == buckets.back());
        EXPECT_LT(size - static_cast<double>(first->range.size() * sizeof(float)), bytes);
      }
      EXPECT_EQ(end, 0u);
    }
}

TEST(Buckets, AreOneForEachParameterOrOneForAll) {
  for (const Architecture& architecture : models_to_cut()) {
    EXPECT_EQ(make_buckets(architecture, sizeof(float)).size(), architecture.parameters.size());
    EXPECT_EQ(make_buckets(architecture, 1e9).size(), 1u);
  }
}

// What a step sends is known before the run, by the byte, for every topology and both kinds of
// sums.
TEST(Buckets, SendWhatCheckSays) {
  for (const TopologyEntry& entry : topology_catalog())
    for (const char* deterministic : {"false", "true"})
      for (const char* bucket : {"4", "1 MB"}) {
        const Settings topology = {"strategy.topology=" + std::string(entry.name)};
        const Settings settings = small_mlp("[20, 16]") + topology +
                                  network_for(topology, "virtual", 5) +
                                  Settings{"task.deterministic=" + std::string(deterministic),
                                           "strategy.bucket=" + std::string(bucket),
                                           "task.eval_every=100", "cluster.cost_only=true"};
        const auto sent = [&](const char* steps) {
          const RunRecord record = run(settings + Settings{"task.max_steps=" + std::string(steps)});
          EXPECT_EQ(record.status, RunStatus::kDone) << record.error;
          std::vector<double> bytes;
          for (const NodeReport& node : record.nodes)
            bytes.push_back(static_cast<double>(node.bytes_sent));
          return bytes;
        };
        const std::vector<double> two = sent("2"), four = sent("4");
        ASSERT_EQ(two.size(), four.size());
        double most = 0;
        for (size_t i = 0; i < two.size(); ++i) most = std::max(most, (four[i] - two[i]) / 2);
        const Job job = load_job("", settings);
        EXPECT_EQ(most, resolve(job).plan.busiest().bytes_sent)
            << entry.name << ", deterministic = " << deterministic << ", buckets of " << bucket;
      }
}

// Six parameters in a bucket each. The sum of three values does not depend on where in a bucket
// they are, except in a ring, where every part begins at another node: so it must not depend on the
// buckets either.
TEST(Buckets, ManyOfThemGiveTheSameSum) {
  const Settings task = small_mlp("[20, 16]") +
                        Settings{"task.max_steps=6", "optimizer.kind=sgd", "optimizer.lr=0.05"};
  const int workers = 3;
  const RoundingBound bound(task, solo() + on("process", 1), 37 + workers);
  for (const TopologyEntry& entry : topology_catalog()) {
    if (!entry.rounds) continue;  // shared memory has no buckets
    SCOPED_TRACE(entry.name);
    const Settings one = {"strategy.kind=allreduce",
                          "strategy.topology=" + std::string(entry.name)};
    const Settings many = one + Settings{"strategy.bucket=\"4 B\""};
    const Trained whole = trained(task + one + network_for(one, "virtual", workers));
    const Trained simulated = trained(task + many + network_for(one, "virtual", workers));
    const Trained real = trained(task + many + network_for(one, "process", workers));
    EXPECT_GT(simulated.record.nodes[0].messages, whole.record.nodes[0].messages);
    EXPECT_GT(real.record.nodes[0].messages, whole.record.nodes[0].messages);
    EXPECT_EQ(real.parameters, simulated.parameters);
    EXPECT_TRUE(entry.name == "ring" || simulated.parameters == whole.parameters);
    bound.expect_close(real.parameters, "processes");
    bound.expect_close(simulated.parameters, "a virtual cluster");
  }
}

}  // namespace
}  // namespace tutti
