// Parameters that come layer by layer while the forward pass goes on: the same result, in the time
// that the overlap leaves.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/random.h"
#include "strategies/parameter_server/layout.h"
#include "tests/strategies/parameter_server/runs.h"

namespace tutti {
namespace {

using namespace testing_support;
namespace ps = parameter_server;

// Three layers of a mebibyte each and a small one.
Settings wide_task(int workers) {
  return {"task.data={kind=\"synthetic-classes\", samples=400, features=512, classes=10, test=0}",
          "task.model={kind=\"mlp\", hidden=[512, 512, 512]}",
          "task.global_batch=" + std::to_string(32 * workers),
          "task.max_steps=6",
          "task.eval_every=100",
          "optimizer.kind=sgd",
          "optimizer.lr=0.1",
          "cluster.timeout=60"};
}

Settings slow_network(int workers) {
  return {"cluster.fabric=virtual",      "cluster.workers=" + std::to_string(workers),
          "cluster.speed=\"2 GFLOP/s\"", "cluster.bandwidth=\"1 Gbit/s\"",
          "cluster.latency=\"1 us\"",    "cluster.memory_bandwidth=\"10000 GB/s\""};
}

Settings pull(const std::string& how) { return {"strategy.pull=" + how}; }

TEST(Layers, MakeNoDifferenceToTheResult) {
  for (const int count : {1, 3})
    for (const std::string consistency : {"bsp", "ssp"})
      for (const std::string deterministic : {"true", "false"}) {
        if (consistency == "ssp" && (deterministic == "true" || count == 3)) continue;
        // One worker, if its speed decides what it reads.
        const int workers = consistency == "bsp" ? 3 : 1;
        const Settings settings =
            wide_task(workers) + slow_network(workers) + servers(count, consistency) +
            Settings{"task.deterministic=" + deterministic, "task.eval_every=0.5"};
        EXPECT_EQ(checksum(settings + pull("layers")), checksum(settings + pull("whole")))
            << count << " servers, " << consistency;
      }
}

// A worker is lost while pieces are on their way to it or to others.
TEST(Layers, MakeNoDifferenceWhenAWorkerIsLost) {
  const Settings settings = wide_task(3) + slow_network(3) + servers(2, "bsp") +
                            Settings{"task.deterministic=true", "task.max_steps=4"};
  const RunRecord undisturbed = run(settings + pull("whole"));
  ASSERT_EQ(undisturbed.status, "done") << undisturbed.error;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Random random(seed, Stream::kFault);
    Job job = load_job("", settings + pull("layers"));
    job.cluster.faults.push_back(
        {.kind = "crash",
         .at_s = random.uniform() * 0.8 * undisturbed.nodes.front().total_s,
         .nodes = {1 + static_cast<int64_t>(random.below(2))}});
    const RunRecord record = run_job(job);
    ASSERT_EQ(record.status, "done") << "seed " << seed << ": " << record.error;
    EXPECT_EQ(record.nodes.front().parameters_sha256, undisturbed.nodes.front().parameters_sha256)
        << "seed " << seed;
    EXPECT_GT(counter(record, "workers_lost"), 0);
  }
}

double time_s(const Settings& settings) {
  const RunRecord record = run(settings);
  EXPECT_EQ(record.status, "done") << record.error;
  return record.nodes.front().total_s;
}

// One worker and one server: piece k arrives when all up to it have crossed the wire, and layer k
// begins when it has arrived and layer k - 1 has ended. All else is the same either way.
TEST(Layers, TakeTheTimeThatTheOverlapLeaves) {
  const Settings settings =
      wide_task(1) + slow_network(1) + servers(1, "bsp") + Settings{"cluster.cost_only=true"};
  const Architecture architecture = prepare(load_job("", settings)).architecture;
  const double bytes_per_s = 1e9 / 8 * 0.957, flops_per_s = 2e9, samples = 32;
  const auto pieces = ps::forward_pieces_of(architecture, {0, architecture.parameter_count});
  ASSERT_EQ(pieces.size(), 3u);
  double arrived_s = 0, forward_s = 0, compute_s = 0;
  size_t piece = 0;
  for (const Layer& layer : architecture.layers) {
    const double layer_s = samples * layer.flops / flops_per_s;
    if (!layer.parameters.empty()) {
      const size_t last = architecture.parameters[layer.parameters.back()].range.end;
      for (; piece < pieces.size() && pieces[piece].begin < last; ++piece)
        arrived_s += 4 * static_cast<double>(pieces[piece].size()) / bytes_per_s;
      forward_s = std::max(forward_s, arrived_s);
    }
    forward_s += layer_s;
    compute_s += layer_s;
  }
  const double saved_s = arrived_s + compute_s - forward_s;
  EXPECT_GT(saved_s, 0.3 * arrived_s);  // or there is nothing to see
  const double whole_s = time_s(settings + pull("whole"));
  const double layers_s = time_s(settings + pull("layers"));
  EXPECT_NEAR(whole_s - layers_s, 6 * saved_s, 0.01 * 6 * saved_s);
}

// With several servers, too, and never for the worse.
TEST(Layers, SaveTimeWithSeveralServersAndWorkers) {
  for (const std::string consistency : {"bsp", "ssp", "asp"}) {
    const Settings settings = wide_task(4) + slow_network(4) + servers(2, consistency) +
                              Settings{"cluster.cost_only=true"};
    EXPECT_LT(time_s(settings + pull("layers")), time_s(settings + pull("whole"))) << consistency;
  }
}

TEST(Layers, AreGroupedWhereTheyAreSmall) {
  const Architecture small =
      prepare(load_job("", logistic_task() + servers(1, "bsp") + cluster("virtual", 1)))
          .architecture;
  EXPECT_EQ(ps::forward_pieces_of(small, {0, small.parameter_count}).size(), 1u);
  EXPECT_TRUE(ps::forward_pieces_of(small, {0, 0}).empty());
}

}  // namespace
}  // namespace tutti
