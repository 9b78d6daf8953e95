// This machine as a cluster: what is fitted to times is found again, and what is simulated is what
// was fitted.
#include "testbed/this_machine.h"

#include <gtest/gtest.h>

#include "collectives/all_reduce.h"
#include "core/bytes.h"
#include "core/isolated_run.h"
#include "core/temporary_folder.h"
#include "fabric/process/process_fabric.h"
#include "jobs/plugins.h"
#include "jobs/run_folder.h"
#include "testbed/clusters.h"

namespace tutti {
namespace {

const std::atomic<bool> kNever{false};

ClusterConfig machine(int64_t cores) {
  ClusterConfig c;
  c.fabric = FabricKind::kVirtual;
  c.workers = c.nodes_per_host = cores;
  c.memory_bandwidth = 25e9;
  c.cache_bytes = 24e6;
  c.cache_bandwidth = 170e9;
  c.visibility_s = 50e-9;
  c.host_bandwidth = 11e9;
  c.host_latency_s = 800e-9;
  return c;
}

std::vector<SumTime> times_of(const ClusterConfig& c) {
  std::vector<SumTime> times;
  for (size_t bytes = 4096; bytes <= size_t{64} << 20; bytes *= 4) {
    const auto size = static_cast<double>(bytes);
    times.push_back({bytes, direct_time_of(c, size), ring_time_of(c, size)});
  }
  return times;
}

TEST(ThisMachine, IsFittedToTheTimesOfItsSums) {
  for (const int64_t cores : {2, 4, 16}) {
    const ClusterConfig real = machine(cores);
    std::vector<SumTime> times = times_of(real);
    ClusterConfig found;
    found.workers = found.nodes_per_host = cores;
    fit_sums(found, times);
    EXPECT_NEAR(found.cache_bandwidth, real.cache_bandwidth, 0.05 * real.cache_bandwidth);
    EXPECT_NEAR(found.memory_bandwidth, real.memory_bandwidth, 0.1 * real.memory_bandwidth);
    EXPECT_NEAR(found.visibility_s, real.visibility_s, 0.05 * real.visibility_s);
    EXPECT_NEAR(found.host_latency_s, real.host_latency_s, 0.05 * real.host_latency_s);
    EXPECT_NEAR(found.host_bandwidth, real.host_bandwidth, 0.05 * real.host_bandwidth);
    // Measured times are off, up and down.
    for (size_t i = 0; i < times.size(); ++i) {
      times[i].direct_s *= i % 2 ? 1.1 : 0.9;
      times[i].ring_s *= i % 2 ? 0.9 : 1.1;
    }
    fit_sums(found, times);
    for (const SumTime& time : times_of(real)) {
      const auto bytes = static_cast<double>(time.bytes);
      EXPECT_NEAR(direct_time_of(found, bytes) / time.direct_s, 1, 0.15) << time.bytes;
      EXPECT_NEAR(ring_time_of(found, bytes) / time.ring_s, 1, 0.15) << time.bytes;
    }
  }
}

// Where everything fits the caches, or nothing costs anything, there is still a cluster.
TEST(ThisMachine, IsFittedToTimesThatTellLittle) {
  for (const double scale : {0.0, 1.0}) {
    std::vector<SumTime> times;
    for (const size_t bytes : {size_t{4096}, size_t{65536}, size_t{1} << 20})
      times.push_back({bytes, 1e-6 + scale * static_cast<double>(bytes) * 1e-11,
                       2e-6 + scale * static_cast<double>(bytes) * 1e-10});
    ClusterConfig found;
    found.fabric = FabricKind::kVirtual;
    found.workers = found.nodes_per_host = 2;
    fit_sums(found, times);
    EXPECT_NO_THROW(validate_cluster(found, 2));
    for (const SumTime& time : times)
      EXPECT_NEAR(direct_time_of(found, static_cast<double>(time.bytes)) / time.direct_s, 1, 0.1);
  }
}

double simulated_s(const ClusterConfig& cluster, const std::string& name, size_t bytes) {
  ClusterConfig costs = cluster;
  costs.cost_only = true;
  const auto body = [&](Node& node) {
    Window& window = *node.endpoint().open_window(bytes, 10);
    Group group{.ranks = {}, .index = static_cast<size_t>(node.endpoint().rank()), .racks = {}};
    for (Rank rank = 0; rank < node.endpoint().size(); ++rank) group.ranks.push_back(rank);
    const auto sum = name == "direct" ? make_direct_all_reduce(node, nullptr, window, kSumFloat)
                                      : make_all_reduce(node, nullptr, topology(name).rounds, group,
                                                        bytes / sizeof(float), kSumFloat);
    const double began_s = node.clock().now();
    sum->start(window.of(node.endpoint().rank()), Tag(Purpose::kGradient, Tag::wrapped(1)));
    sum->finish();
    return std::to_string(1e9 * (node.clock().now() - began_s));
  };
  const std::vector<std::string> roles(static_cast<size_t>(cluster.workers), "worker");
  double slowest_s = 0;
  for (const NodeOutcome& outcome : make_fabric(costs, roles, 1)->run(body, kNever)) {
    EXPECT_EQ(outcome.kind, NodeOutcome::Kind::kDone) << outcome.error;
    slowest_s = std::max(slowest_s, std::stod(outcome.result) / 1e9);
  }
  return slowest_s;
}

TEST(ThisMachine, SimulatesTheTimesItWasFittedTo) {
  for (const NetworkSolver solver : {NetworkSolver::kSimgrid, NetworkSolver::kIncremental})
    for (const int64_t cores : {2, 4}) {
      ClusterConfig cluster = machine(cores);
      cluster.network_solver = solver;
      for (const SumTime& time : times_of(cluster)) {
        EXPECT_NEAR(simulated_s(cluster, "direct", time.bytes) / time.direct_s, 1, 0.02)
            << cores << " " << time.bytes;
        EXPECT_NEAR(simulated_s(cluster, "ring", time.bytes) / time.ring_s, 1, 0.1)
            << cores << " " << time.bytes;
      }
    }
}

TEST(ThisMachine, IsWrittenAsAClusterFile) {
  const TemporaryFolder folder;
  MachineFigures figures;
  figures.cluster = machine(2);
  figures.cluster.speed_flops = 41.7e9;
  figures.cluster.loop_overhead_s = 3.2e-6;
  figures.sums = times_of(figures.cluster);
  write_file(folder / "this.toml", cluster_file_text(figures));
  const ClusterConfig back = load_cluster(folder / "this.toml");
  EXPECT_EQ(back.workers, 2);
  EXPECT_EQ(back.nodes_per_host, 2);
  EXPECT_NEAR(back.speed_flops, 41.7e9, 1e6);
  EXPECT_NEAR(back.loop_overhead_s, 3.2e-6, 1e-12);
  EXPECT_NEAR(back.visibility_s, 50e-9, 1e-12);
  EXPECT_NEAR(back.host_latency_s, 800e-9, 1e-12);
  EXPECT_NEAR(back.host_bandwidth, 11e9, 1e6);
  EXPECT_NEAR(back.cache_bytes, 24e6, 1e3);
}

}  // namespace
}  // namespace tutti
