// Faults of the virtual cluster, and deadlocks.
#include "core/random.h"
#include "tests/fabric/virtual_cluster.h"
#include "tests/support/thorough.h"

namespace tutti {
namespace {

Tag gradient_tag(uint64_t step) { return Tag(Purpose::kGradient, Tag::wrapped(step)); }

FaultConfig fault(FaultKind kind, double at_s, std::vector<int64_t> nodes) {
  FaultConfig config;
  config.kind = kind;
  config.at_s = at_s;
  config.nodes = std::move(nodes);
  return config;
}

// Waits for the members that are lost until `end_s` and says who and when.
std::string losses_until(Node& node, double end_s) {
  std::string seen;
  while (node.clock().now() < end_s) {
    node.clock().sleep(0.125);
    while (const auto event = node.membership().next_event())
      seen += fmt::format("{}{}@{} ", event->kind == MemberEvent::Kind::kLost ? "-" : "+",
                          event->rank, node.clock().now());
  }
  return seen;
}

TEST(VirtualFaults, ACrashIsNoticedAtItsTime) {
  ClusterConfig config = virtual_cluster(3);
  config.faults = {fault(FaultKind::kCrash, 1.5, {1})};
  const VirtualRun run = simulate(config, [](Node& node) {
    if (node.endpoint().rank() == 1) node.clock().charge({100e9, 0});
    std::vector<std::byte> buffer(8);
    Handle handle = node.endpoint().receive(1, gradient_tag(1), buffer);
    const Completion completion = node.endpoint().wait(handle, kForever);
    in_body(completion.state == State::kPeerLost);
    return time_now(node);
  });
  EXPECT_EQ(run.outcomes[1].kind, NodeOutcome::Kind::kLost);
  EXPECT_EQ(run.outcomes[1].error, "rank 1 crashed at 1.5 s");
  EXPECT_EQ(run.result(0), "1.5");
  EXPECT_EQ(run.result(2), "1.5");
}

TEST(VirtualFaults, ACrashedNodeComesBack) {
  ClusterConfig config = virtual_cluster(2);
  config.faults = {fault(FaultKind::kCrash, 1, {1})};
  config.faults[0].restart_s = 2;
  const VirtualRun run = simulate(config, [](Node& node) -> std::string {
    if (node.endpoint().rank() == 0) return losses_until(node, 5);
    const uint32_t incarnation = node.membership().incarnation(1);
    const std::string started = time_now(node);
    node.clock().charge({1.5e9, 0});
    return fmt::format("{} {} {}", incarnation, started, node.clock().busy_s());
  });
  EXPECT_EQ(run.result(0), "-1@1 +1@3 ");
  EXPECT_EQ(run.result(1), "1 3 1.5");
}

// 1 s of transfer, the link dead for 0.3 s of it: what was carried is not lost, latency comes
// again.
TEST(VirtualFaults, TransfersOutlastAShortCut) {
  for (const FaultKind kind : {FaultKind::kLinkDown, FaultKind::kPartition}) {
    ClusterConfig config = virtual_cluster(3);
    config.faults = {fault(kind, 0.5, {1})};
    config.faults[0].duration_s = 0.3;
    const VirtualRun run = simulate(config, [](Node& node) -> std::string {
      std::vector<std::byte> buffer(95'700'000);
      if (node.endpoint().rank() == 0) send(node, 1, gradient_tag(1), buffer);
      if (node.endpoint().rank() == 1) receive(node, 0, gradient_tag(1), buffer);
      in_body(!node.membership().next_event());
      return time_now(node);
    });
    EXPECT_NEAR(run.number(1), 1 + 0.3 + 2 * 2e-3, 1e-5) << word_of(kind);
  }
}

// The node is lost whether its link is dead or a partition leaves it alone on its side, named or
// not.
TEST(VirtualFaults, ANodeThatIsCutOffIsLost) {
  const FaultConfig faults[] = {fault(FaultKind::kLinkDown, 0.5, {1}),
                                fault(FaultKind::kPartition, 0.5, {1}),
                                fault(FaultKind::kPartition, 0.5, {0, 2})};
  for (const FaultConfig& cut : faults) {
    ClusterConfig config = virtual_cluster(3);
    config.faults = {cut};
    config.detect_s = 1;
    const VirtualRun run = simulate(config, [](Node& node) -> std::string {
      const std::string seen = losses_until(node, 3);
      if (node.endpoint().rank() == 1) return seen;
      std::vector<std::byte> buffer(8);  // the others still have each other
      send(node, 2 - node.endpoint().rank(), gradient_tag(1), buffer);
      receive(node, 2 - node.endpoint().rank(), gradient_tag(1), buffer);
      return seen;
    });
    EXPECT_EQ(run.result(0), "-1@1.5 ") << word_of(cut.kind);
    EXPECT_EQ(run.result(2), "-1@1.5 ") << word_of(cut.kind);
    EXPECT_EQ(run.outcomes[1].kind, NodeOutcome::Kind::kLost) << word_of(cut.kind);
    EXPECT_EQ(run.outcomes[1].result, "-0@1.5 -2@1.5 ") << word_of(cut.kind);
  }
}

// The number of hosts decides, not that of nodes: ranks 0 and 1 share one host, 2 and 3 another,
// and the server has its own.
TEST(VirtualFaults, OfAPartitionTheSideWithFewerHostsIsLost) {
  ClusterConfig config = virtual_cluster(4);
  config.nodes_per_host = 2;
  config.faults = {fault(FaultKind::kPartition, 0.5, {0, 1, 4})};
  const VirtualRun run = simulate(
      config, [](Node& node) { return losses_until(node, 3); }, 1, 1);
  for (const size_t rank : {0u, 1u, 4u}) EXPECT_FALSE(run.result(rank).empty());
  for (const size_t rank : {2u, 3u})
    EXPECT_EQ(run.outcomes[rank].kind, NodeOutcome::Kind::kLost) << rank;
}

TEST(VirtualFaults, APartitionSplitsTheCluster) {
  for (const double duration_s : {0.0, 2.0}) {  // healing later brings nobody back
    ClusterConfig config = virtual_cluster(4);
    config.faults = {fault(FaultKind::kPartition, 0.5, {0, 1})};
    config.faults[0].duration_s = duration_s;
    const VirtualRun run = simulate(config, [](Node& node) -> std::string {
      const Rank self = node.endpoint().rank();
      std::vector<std::byte> buffer(200'000);
      node.clock().sleep(0.6);  // now it is cut, and nobody knows
      Handle across = node.endpoint().send((self + 2) % 4, gradient_tag(1), buffer);
      in_body(node.endpoint().wait(across, kForever).state == State::kPeerLost);
      std::string seen = fmt::format("{} ", node.clock().now());
      seen += losses_until(node, 4);
      Handle sent = node.endpoint().send(self ^ 1, gradient_tag(2), buffer);
      std::vector<std::byte> in(200'000);
      receive(node, self ^ 1, gradient_tag(2), in);
      finish(node, sent);
      return seen;
    });
    for (const size_t rank : {0u, 1u}) EXPECT_EQ(run.result(rank).substr(0, 8), "1.5 -2@1");
    for (const size_t rank : {2u, 3u}) {  // the half without rank 0
      EXPECT_EQ(run.outcomes[rank].result.substr(0, 8), "1.5 -0@1");
      EXPECT_EQ(run.outcomes[rank].kind, NodeOutcome::Kind::kLost);
    }
  }
}

TEST(VirtualFaults, ACrashAfterTheEndChangesNothing) {
  ClusterConfig config = virtual_cluster(2);
  config.faults = {fault(FaultKind::kCrash, 1000, {0, 1})};
  const VirtualRun run = simulate(config, [](Node& node) { return time_now(node); });
  EXPECT_EQ(run.result(0), "0");
  EXPECT_LT(run.joules, 1e-9);
}

TEST(VirtualDeadlock, IsAnErrorWithItsWaitForGraph) {
  const VirtualRun run = simulate(virtual_cluster(4), [](Node& node) -> std::string {
    const Rank self = node.endpoint().rank();
    if (self == 3) return "done";
    std::vector<std::byte> buffer(8);
    node.clock().sleep(1);
    Handle handle = node.endpoint().receive((self + 1) % 3, gradient_tag(3), buffer);
    node.endpoint().wait(handle, kForever);
    return "never";
  });
  for (size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(run.outcomes[rank].kind, NodeOutcome::Kind::kFailed);
    EXPECT_EQ(run.outcomes[rank].exit_code, 4);
    EXPECT_EQ(run.outcomes[rank].error,
              "deadlock: rank 0 waits for rank 1 (gradient, step 3, part 0); "
              "rank 1 waits for rank 2 (gradient, step 3, part 0); "
              "rank 2 waits for rank 0 (gradient, step 3, part 0); rank 3 has ended");
  }
  EXPECT_EQ(run.result(3), "done");
}

TEST(VirtualDeadlock, OfLargeSendsThatNobodyReceives) {
  const VirtualRun run = simulate(virtual_cluster(2), [](Node& node) -> std::string {
    std::vector<std::byte> buffer(kEagerBytes + 1);
    Handle handle = node.endpoint().send(1 - node.endpoint().rank(), gradient_tag(5), buffer);
    node.endpoint().wait(handle, kForever);
    return "never";
  });
  EXPECT_EQ(run.outcomes[0].error,
            "deadlock: rank 0 waits for rank 1 to receive (gradient, step 5, part 0); "
            "rank 1 waits for rank 0 to receive (gradient, step 5, part 0)");
}

TEST(VirtualDeadlock, ADeadlineIsNone) {
  const VirtualRun run = simulate(virtual_cluster(2), [](Node& node) -> std::string {
    std::vector<std::byte> buffer(8);
    Handle handle = node.endpoint().receive(1 - node.endpoint().rank(), gradient_tag(5), buffer);
    in_body(node.endpoint().wait(handle, 7).state == State::kTimedOut);
    return time_now(node);
  });
  EXPECT_EQ(run.result(0), "7");
}

FaultConfig random_fault(Random& random, int nodes) {
  constexpr FaultKind kKinds[] = {FaultKind::kCrash, FaultKind::kLinkDown, FaultKind::kPartition};
  FaultConfig config = fault(kKinds[random.below(3)], random.uniform() * 0.2, {});
  for (int node = 0; node < nodes; ++node)
    if (random.below(4) == 0) config.nodes.push_back(node);
  if (config.nodes.empty()) config.nodes.push_back(0);
  if (random.below(2) == 0) config.restart_s = config.duration_s = random.uniform() * 0.1;
  return config;
}

// Rings with barriers, as a synchronous strategy would; with `planted` one step of rank 0 waits for
// a message that nobody sends.
std::string ring(Node& node, bool planted) {
  node.membership().end_waits_on_any_loss(true);
  const Rank self = node.endpoint().rank();
  const int nodes = node.endpoint().size();
  std::vector<std::byte> out(100'000), in(100'000);
  for (uint64_t step = 0; step < 40; ++step) {
    node.clock().charge({1e6, 1e5});
    const uint64_t expected = planted && self == 0 && step == 20 ? 1000 : step;
    Handle received =
        node.endpoint().receive((self + nodes - 1) % nodes, gradient_tag(expected), in);
    Handle sent = node.endpoint().send((self + 1) % nodes, gradient_tag(step), out);
    for (Handle* handle : {&received, &sent})
      require_done(node, node.endpoint().wait(*handle, kForever));
  }
  return "done";
}

// How a run ended, or "" if in no way that the contract knows.
std::string verdict(const NodeOutcome& outcome) {
  switch (outcome.kind) {
    case NodeOutcome::Kind::kDone:
      return "done";
    case NodeOutcome::Kind::kLost:
      return "lost";
    case NodeOutcome::Kind::kFailed:
      if (outcome.exit_code == 4 && outcome.lost_peer != kAnyRank) return "peer lost";
      return outcome.error.starts_with("deadlock") ? "deadlock" : "";
    case NodeOutcome::Kind::kInterrupted:
      break;
  }
  return "";
}

TEST(VirtualFaults, EveryScheduleEndsInAStatedOutcome) {
  int troubled = 0;
  for (uint64_t seed = 0; seed < seeds(200, 2000); ++seed) {
    Random random(seed, Stream::kFault);
    const int nodes = 2 + static_cast<int>(random.below(7));
    ClusterConfig config = virtual_cluster(nodes);
    config.detect_s = 0.05;
    for (uint64_t faults = 1 + random.below(3); faults > 0; --faults)
      config.faults.push_back(random_fault(random, nodes));
    const VirtualRun run = simulate(config, [](Node& node) -> std::string {
      // A node that comes back has no part in a ring that has ended without it.
      if (node.membership().incarnation(node.endpoint().rank()) > 0) return "back";
      return ring(node, false);
    });
    bool trouble = false;
    for (const NodeOutcome& outcome : run.outcomes) {
      const std::string ended = verdict(outcome);
      EXPECT_TRUE(ended == "done" || ended == "lost" || ended == "peer lost")
          << "seed " << seed << ": " << outcome.error;
      trouble = trouble || ended != "done";
    }
    troubled += trouble;
  }
  EXPECT_GT(troubled, 100);  // or the faults do not reach the runs
}

TEST(VirtualFaults, TheHarnessCatchesAPlantedDeadlock) {
  const VirtualRun run = simulate(virtual_cluster(4), [](Node& node) { return ring(node, true); });
  for (const NodeOutcome& outcome : run.outcomes) EXPECT_EQ(verdict(outcome), "deadlock");
  EXPECT_NE(run.outcomes[2].error.find("rank 0 waits for rank 3 (gradient, step 1000, part 0)"),
            std::string::npos)
      << run.outcomes[2].error;
}

}  // namespace
}  // namespace tutti
