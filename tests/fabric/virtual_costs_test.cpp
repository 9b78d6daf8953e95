// What computing costs on the virtual fabric, in time and energy, against closed forms.
#include <algorithm>
#include <cmath>

#include "fabric/exchange.h"
#include "tests/fabric/virtual_cluster.h"

namespace tutti {
namespace {

TEST(VirtualCosts, ChargeFollowsSpeedThreadsAndMemory) {
  ClusterConfig config = virtual_cluster(2);
  config.threads = 4;
  config.speed_factors = {1, 0.5};
  const VirtualRun run = simulate(config, [](Node& node) {
    node.clock().charge({8e9, 5e9});
    in_body(node.clock().load() == 1);
    node.clock().sleep(node.clock().now());
    in_body(std::abs(node.clock().load() - 0.5) < 1e-9);
    return exact(node.clock().busy_s());
  });
  EXPECT_NEAR(run.number(0), 2 + 0.5, 1e-9);
  EXPECT_NEAR(run.number(1), 4 + 0.5, 1e-9);
}

// Four nodes on two cores take twice as long, two of them no longer than alone.
TEST(VirtualCosts, SharedCoresComputeForAllNodes) {
  for (const int busy : {1, 2, 4}) {
    ClusterConfig config = virtual_cluster(4);
    config.shared_cores = 2;
    config.idle_watts = 50;
    config.busy_watts = 100;
    const VirtualRun run = simulate(config, [busy](Node& node) {
      if (node.endpoint().rank() < busy) node.clock().charge({1e9, 0});
      return exact(node.clock().now());
    });
    const double each_s = busy == 4 ? 2 : 1;
    for (int rank = 0; rank < busy; ++rank)
      EXPECT_NEAR(run.number(static_cast<size_t>(rank)), each_s, 1e-9);
    double joules = 0;
    for (const double host : run.energy.hosts) joules += host;
    // All hosts are there all the time, and each second of a core draws 50 W more.
    EXPECT_NEAR(joules, 4 * 50 * each_s + busy * 50, 1e-6);
  }
}

TEST(VirtualCosts, EachWorkerMayHaveItsOwnNumberOfThreads) {
  ClusterConfig config = virtual_cluster(3);
  config.threads = 8;  // of nobody: each is named
  config.thread_counts = {1, 4, 2};
  config.speed_factors = {1, 1, 0.5};
  const VirtualRun run = simulate(config, [](Node& node) {
    node.clock().charge({8e9, 0});
    return exact(node.clock().busy_s());
  });
  const std::vector<double> expected = {8, 2, 8};
  for (size_t rank = 0; rank < 3; ++rank)
    EXPECT_NEAR(run.number(rank), expected[rank], 1e-9) << rank;
}

// A core that is half as fast takes twice as long, and a straggler takes its factor. More threads
// do not help.
TEST(VirtualCosts, OverheadsFollowTheCore) {
  ClusterConfig config = virtual_cluster(3);
  config.threads = 4;
  config.step_overhead_s = 1e-3;
  config.layer_overhead_s = 1e-4;
  config.speed_factors = {1, 0.5, 1};
  StragglerConfig straggler;
  straggler.node = 2;
  straggler.factor = 3;
  config.stragglers = {straggler};
  const VirtualRun run = simulate(config, [](Node& node) {
    node.clock().charge({.flops = 0, .memory_bytes = 0, .passes = 2, .layers = 5});
    return exact(node.clock().busy_s());
  });
  const double here = kReferenceFlops / config.speed_flops * (2 * 1e-3 + 5 * 1e-4);
  EXPECT_NEAR(run.number(0), here, 1e-12);
  EXPECT_NEAR(run.number(1), 2 * here, 1e-12);
  EXPECT_NEAR(run.number(2), 3 * here, 1e-12);
}

double charge_at(const StragglerConfig& straggler, double at_s, double work_s, size_t rank = 0) {
  ClusterConfig config = virtual_cluster(2);
  config.stragglers = {straggler};
  return simulate(config,
                  [&](Node& node) {
                    node.clock().sleep(at_s);
                    node.clock().charge({work_s * 1e9, 0});
                    return exact(node.clock().now() - at_s);
                  })
      .number(rank);
}

TEST(VirtualStragglers, ConstantAndDrift) {
  StragglerConfig constant;
  constant.node = 1;
  constant.factor = 3;
  EXPECT_NEAR(charge_at(constant, 0, 1, 0), 1, 1e-9);
  EXPECT_NEAR(charge_at(constant, 0, 1, 1), 3, 1e-9);
  StragglerConfig drift;
  drift.kind = StragglerKind::kDrift;
  drift.factor = 3;
  drift.duration_s = 10;
  EXPECT_NEAR(charge_at(drift, 0, 1), 1, 1e-9);
  EXPECT_NEAR(charge_at(drift, 5, 1), 2, 1e-9);
  EXPECT_NEAR(charge_at(drift, 50, 1), 3, 1e-9);
  StragglerConfig wave;
  wave.kind = StragglerKind::kWave;
  wave.factor = 3;
  wave.at_s = 1;
  wave.duration_s = 4;
  EXPECT_NEAR(charge_at(wave, 0.5, 1), 1, 1e-9);
  EXPECT_NEAR(charge_at(wave, 2, 1), 3, 1e-9);  // a quarter of a wave after it began
  EXPECT_NEAR(charge_at(wave, 4, 1), 1, 1e-9);
  EXPECT_NEAR(charge_at(wave, 6, 1), 3, 1e-9);
}

TEST(VirtualStragglers, PausesDelayWhoComputes) {
  StragglerConfig pause;
  pause.kind = StragglerKind::kPause;
  pause.at_s = 1;
  pause.duration_s = 2;
  EXPECT_NEAR(charge_at(pause, 0, 0.9), 0.9, 1e-9);  // over before
  EXPECT_NEAR(charge_at(pause, 0, 1.5), 3.5, 1e-9);  // caught in the middle
  EXPECT_NEAR(charge_at(pause, 2, 1.0), 2.0, 1e-9);  // begins within: waits for the rest
  EXPECT_NEAR(charge_at(pause, 3, 1.0), 1.0, 1e-9);  // begins after
}

TEST(VirtualStragglers, RandomSlownessHasItsMeanAndItsSeed) {
  constexpr int kCharges = 4000;
  for (const char* distribution : {"fixed", "uniform", "exponential", "lognormal"}) {
    ClusterConfig config = virtual_cluster(2);
    StragglerConfig random;
    random.kind = StragglerKind::kRandom;
    random.factor = 4;
    random.probability = 0.25;
    random.distribution = value_of(distribution, random.distribution);
    config.stragglers = {random};
    const auto run = [&](uint64_t seed) {
      return simulate(
          config,
          [](Node& node) {
            double least_s = kForever;
            int slow = 0;
            for (int i = 0; i < kCharges; ++i) {
              const double before_s = node.clock().now();
              node.clock().charge({1e9, 0});
              const double took_s = node.clock().now() - before_s;
              least_s = std::min(least_s, took_s);
              slow += took_s > 1.0001;
            }
            in_body(least_s >= 1 - 1e-6);
            in_body(std::abs(slow - kCharges / 4) < kCharges / 20);
            return exact(node.clock().busy_s());
          },
          seed);
    };
    const VirtualRun first = run(1), again = run(1), other = run(2);
    // One in four takes 4 s, the others 1 s. The lognormal has heavy tails, hence the margin.
    EXPECT_NEAR(first.number(0) / kCharges, 1.75, 0.2) << distribution;
    EXPECT_EQ(first.result(0), again.result(0)) << distribution;
    EXPECT_NE(first.result(0), first.result(1)) << distribution;
    EXPECT_NE(first.result(0), other.result(0)) << distribution;
  }
}

// A step is slow as a whole, however much of it is charged at once.
TEST(VirtualStragglers, AStepIsSlowFromItsBeginningToItsEnd) {
  ClusterConfig config = virtual_cluster(2);
  config.stragglers = {{.kind = StragglerKind::kRandom, .factor = 4, .probability = 0.25}};
  const auto slow_steps = [&](int charges) {
    return simulate(config,
                    [&](Node& node) {
                      std::string slow;
                      for (int step = 0; step < 400; ++step) {
                        for (int i = 0; i < charges; ++i) {  // as many as there are parts
                          node.clock().begin_chunk();
                          node.clock().charge({1e6, 0});
                        }
                        node.clock().begin_step();
                        const double before_s = node.clock().now();
                        for (int i = 0; i < charges; ++i) node.clock().charge({1e9 / charges, 0});
                        const double took_s = node.clock().now() - before_s;
                        in_body(std::abs(took_s - 1) < 1e-6 || std::abs(took_s - 4) < 1e-6);
                        slow += took_s > 2 ? 's' : '.';
                      }
                      return slow;
                    })
        .result(0);
  };
  const std::string once = slow_steps(1);
  EXPECT_NEAR(static_cast<double>(std::count(once.begin(), once.end(), 's')), 100, 30);
  EXPECT_EQ(slow_steps(7), once) << "whatever they consist of, and is measured between";
}

// Two nodes besides three workers, on hosts of their own or on those of workers 0 and 1.
TEST(VirtualCosts, ColocatedNodesShareCoresAndSendNothing) {
  ClusterConfig config = virtual_cluster(3);
  const auto body = [](Node& node) {
    node.clock().charge({2e9, 0});
    const double computed_s = node.clock().now();
    std::vector<std::byte> buffer(1'000'000);
    const Rank rank = node.endpoint().rank();
    if (rank == 0) send(node, 3, Tag(Purpose::kUser, 1), buffer);
    if (rank == 3) receive(node, 0, Tag(Purpose::kUser, 1), buffer);
    in_body(rank != 0 || node.clock().now() >= computed_s);
    return exact(rank == 3 ? node.clock().now() - computed_s : computed_s);
  };
  const VirtualRun apart = simulate(config, body, 1, 2);
  for (const size_t rank : {0u, 1u, 2u, 4u}) EXPECT_NEAR(apart.number(rank), 2, 1e-9);
  config.colocated = true;
  const VirtualRun together = simulate(config, body, 1, 2);
  for (const size_t rank : {0u, 1u, 4u}) EXPECT_NEAR(together.number(rank), 4, 1e-9) << rank;
  EXPECT_NEAR(together.number(2), 2, 1e-9);  // nobody shares its host
  EXPECT_LT(together.number(3), apart.number(3) / 10);
  for (const int64_t node : {0, 1, 2}) EXPECT_EQ(host_of(config, node), node);
  for (const int64_t node : {3, 4}) EXPECT_EQ(host_of(config, node), node - 3);
  config.racks = 3;
  for (const int64_t node : {3, 4}) EXPECT_EQ(rack_of(config, node), rack_of(config, node - 3));
}

// It is the process that crashes: who shares its host goes on.
TEST(VirtualCosts, AColocatedNodeCrashesAlone) {
  ClusterConfig config = virtual_cluster(2);
  config.colocated = true;
  config.faults = {{.at_s = 1, .nodes = {2}}};
  const VirtualRun run = simulate(
      config,
      [](Node& node) {
        node.clock().charge({3e9, 0});
        return exact(node.clock().now());
      },
      1, 1);
  EXPECT_NEAR(run.number(0), 3.5, 1e-9);  // at half speed for the first second
  EXPECT_EQ(run.outcomes[2].kind, NodeOutcome::Kind::kLost);
}

TEST(VirtualEnergy, IsIdleTimePlusBusyTime) {
  ClusterConfig config = virtual_cluster(2);
  config.idle_watts = 40;
  config.busy_watts = 100;
  config.link_idle_watts = config.link_busy_watts = 0;
  const auto body = [](Node& node) -> std::string {
    if (node.endpoint().rank() == 0) node.clock().charge({4e9, 0});
    node.clock().sleep(10 - node.clock().now());
    return "";
  };
  EXPECT_NEAR(simulate(config, body).joules, 2 * 10 * 40 + 4 * 60, 1e-6);
  // Two nodes are the two halves of one host.
  config.nodes_per_host = 2;
  EXPECT_NEAR(simulate(config, body).joules, 10 * 40 + 4 * 30, 1e-6);
  // A host that is off needs nothing.
  config.nodes_per_host = 1;
  FaultConfig crash;
  crash.at_s = 2;
  crash.nodes = {0};
  config.faults = {crash};
  EXPECT_NEAR(simulate(config, body).joules, 2 * 100 + 10 * 40, 1e-6);
}

TEST(VirtualEnergy, HostsOfAKindDrawTheirOwnPower) {
  ClusterConfig config = virtual_cluster(3);
  config.idle_watts = 40;
  config.busy_watts = 100;
  config.link_idle_watts = config.link_busy_watts = 0;
  config.host_kinds = {{.name = "large", .hosts = {1, 2}, .idle_watts = 90, .busy_watts = 300},
                       {.name = "busy", .hosts = {0}, .busy_watts = 140}};
  const VirtualRun run = simulate(config, [](Node& node) -> std::string {
    if (node.endpoint().rank() < 2) node.clock().charge({4e9, 0});
    node.clock().sleep(10 - node.clock().now());
    return "";
  });
  ASSERT_EQ(run.energy.hosts.size(), 3u);
  EXPECT_NEAR(run.energy.hosts[0], 10 * 40 + 4 * 100, 1e-6);  // idle as all others
  EXPECT_NEAR(run.energy.hosts[1], 10 * 90 + 4 * 210, 1e-6);
  EXPECT_NEAR(run.energy.hosts[2], 10 * 90, 1e-6);
}

TEST(HostKinds, StayWithTheirHosts) {
  ClusterConfig config = virtual_cluster(4);
  config.host_kinds = {{.name = "a", .hosts = {0, 3}}, {.name = "b", .hosts = {2}}};
  ClusterConfig fewer = config;
  shrink_cluster(fewer, 2);
  ASSERT_EQ(fewer.host_kinds.size(), 1u);
  EXPECT_EQ(fewer.host_kinds[0].hosts, (std::vector<int64_t>{0}));
  // The machines of workers that give them up to servers are the same machines.
  yield_machines(config, 2);
  EXPECT_EQ(config.host_kinds.size(), 2u);
  EXPECT_EQ(kind_of_host(config, 2)->name, "b");
  EXPECT_EQ(kind_of_host(config, 1), nullptr);
}

// A node that has ended its part tests its result while the others go on: that takes time, but the
// energy of an idle host, and what happens after the last node's part does not count at all.
TEST(VirtualEnergy, EndsWithThePartOfEachNode) {
  ClusterConfig config = virtual_cluster(2);
  config.idle_watts = 40;
  config.busy_watts = 100;
  config.link_idle_watts = 2;
  config.link_busy_watts = 6;
  const VirtualRun run = simulate(config, [](Node& node) -> std::string {
    const bool first = node.endpoint().rank() == 0;
    node.clock().charge({first ? 4e9 : 10e9, 0});
    node.clock().end_part();
    const double ended_s = node.clock().now();
    node.clock().charge({20e9, 0});
    in_body(std::abs(node.clock().now() - ended_s - 20) < 1e-9);
    const std::vector<std::byte> bytes(10'000'000);
    std::vector<std::byte> buffer(bytes.size());
    Handle handle = first ? node.endpoint().send(1, Tag(Purpose::kUser, 0), bytes)
                          : node.endpoint().receive(0, Tag(Purpose::kUser, 0), buffer);
    node.endpoint().wait(handle, 100);
    return "";
  });
  ASSERT_EQ(run.outcomes[0].kind, NodeOutcome::Kind::kDone) << run.outcomes[0].error;
  ASSERT_EQ(run.energy.hosts.size(), 2u);
  EXPECT_NEAR(run.energy.hosts[0], 10 * 40 + 4 * 60, 1e-6);
  EXPECT_NEAR(run.energy.hosts[1], 10 * 100, 1e-6);
  ASSERT_EQ(run.energy.links.size(), 2u);
  for (const double joules : run.energy.links) EXPECT_NEAR(joules, 10 * 2, 1e-6);
  EXPECT_TRUE(run.energy.uplinks.empty());
}

// A link that carries bytes for t seconds one way takes half of its additional power for t.
TEST(VirtualEnergy, OfLinksGrowsWithTheBytes) {
  ClusterConfig config = virtual_cluster(4);
  config.idle_watts = config.busy_watts = 0;
  config.link_idle_watts = 2;
  config.link_busy_watts = 6;
  const auto joules = [&](Rank to) {
    return simulate(config,
                    [&](Node& node) -> std::string {
                      std::vector<std::byte> bytes(10'000'000);
                      Handle handle;
                      if (node.endpoint().rank() == 0)
                        handle = node.endpoint().send(to, Tag(Purpose::kUser, 0), bytes);
                      if (node.endpoint().rank() == to)
                        handle = node.endpoint().receive(0, Tag(Purpose::kUser, 0), bytes);
                      if (handle.pending()) node.endpoint().wait(handle, 100);
                      node.clock().sleep(10 - node.clock().now());
                      return "";
                    })
        .joules;
  };
  const double on_wire_s = 10e6 / 0.957 / config.bandwidth;
  EXPECT_NEAR(joules(1), 4 * 2 * 10 + 2 * on_wire_s * 2, 1e-6);  // two links
  config.racks = 2;
  config.rack_bandwidth = config.bandwidth;
  EXPECT_NEAR(joules(1), 6 * 2 * 10 + 2 * on_wire_s * 2, 1e-6);
  EXPECT_NEAR(joules(3), 6 * 2 * 10 + 4 * on_wire_s * 2, 1e-6);  // and two uplinks
}

}  // namespace
}  // namespace tutti
