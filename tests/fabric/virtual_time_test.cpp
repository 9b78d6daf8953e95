// The virtual fabric's network against closed forms; determinism; scale.
#include <dlfcn.h>

#include <cstdlib>

#include "tests/fabric/virtual_cluster.h"

namespace tutti {
namespace {

Tag tag(uint64_t step) { return Tag(Purpose::kUser, Tag::wrapped(step)); }

void exchange(Node& node, Rank to, Rank from, size_t bytes) {
  std::vector<std::byte> out(bytes), in(bytes);
  Handle received = node.endpoint().receive(from, tag(1), in);
  send(node, to, tag(1), out);
  finish(node, received);
}

TEST(VirtualTime, OneMessageTakesLatencyAndSize) {
  for (const size_t bytes : {size_t{0}, size_t{1000}, size_t{65'536}, size_t{10'000'000}}) {
    const VirtualRun run = simulate(virtual_cluster(2), [&](Node& node) {
      std::vector<std::byte> buffer(bytes);
      if (node.endpoint().rank() == 0)
        send(node, 1, tag(1), buffer);
      else
        receive(node, 0, tag(1), buffer);
      return time_now(node);
    });
    const double expected_s = 2e-3 + static_cast<double>(bytes) / (1e8 * kTcpShare);
    EXPECT_NEAR(run.number(1), expected_s, 1e-7 + 1e-6 * expected_s) << bytes;
    // An eager sender goes on at once, another one when all has been carried.
    EXPECT_NEAR(run.number(0), bytes <= kEagerBytes ? 0 : expected_s, 1e-6) << bytes;
  }
}

// A node that waits for several peers cannot say who is late, and must not blame "rank -1".
TEST(VirtualTime, OfSeveralWaitsInVainNobodyIsBlamed) {
  ClusterConfig config = virtual_cluster(3);
  config.timeout_s = 2;
  const VirtualRun run = simulate(config, [](Node& node) -> std::string {
    if (node.endpoint().rank() > 0) return "";
    throw_not_done(node, {State::kTimedOut, kAnyRank, Tag(), 0});
  });
  EXPECT_EQ(run.outcomes[0].error,
            "no rank sent anything for 2 s; if they are only slow, raise cluster.timeout");
}

// An error about a wait for anybody names a rank or says that it knows none.
TEST(VirtualTime, NoErrorNamesARankThatThereIsNot) {
  for (const State state :
       {State::kPeerLost, State::kTimedOut, State::kTruncated, State::kCancelled}) {
    const VirtualRun run = simulate(virtual_cluster(2), [&](Node& node) -> std::string {
      if (node.endpoint().rank() > 0) return "";
      throw_not_done(node, {state, kAnyRank, Tag(Purpose::kUser, 1), 8});
    });
    EXPECT_FALSE(run.outcomes[0].error.empty());
    EXPECT_EQ(run.outcomes[0].error.find("-1"), std::string::npos) << run.outcomes[0].error;
  }
}

TEST(VirtualTime, SendingDoesNotSlowDownReceiving) {
  const VirtualRun run = simulate(virtual_cluster(2), [](Node& node) {
    exchange(node, 1 - node.endpoint().rank(), 1 - node.endpoint().rank(), 10'000'000);
    return time_now(node);
  });
  EXPECT_NEAR(run.number(0), 2e-3 + 0.1 / kTcpShare, 1e-6);
}

TEST(VirtualTime, TwoSendersShareTheReceiversLink) {
  const VirtualRun run = simulate(virtual_cluster(3), [](Node& node) {
    std::vector<std::byte> first(10'000'000), second(10'000'000);
    if (node.endpoint().rank() != 0) {
      send(node, 0, tag(1), first);
      return time_now(node);
    }
    Handle handles[] = {node.endpoint().receive(1, tag(1), first),
                        node.endpoint().receive(2, tag(1), second)};
    for (Handle& handle : handles) finish(node, handle);
    return time_now(node);
  });
  EXPECT_NEAR(run.number(0), 2e-3 + 0.2 / kTcpShare, 1e-5);
}

TEST(VirtualTime, RacksShareTheirUplink) {
  ClusterConfig config = virtual_cluster(8);
  config.racks = 2;
  config.rack_bandwidth = 2e8;
  config.rack_latency_s = 5e-3;
  // Within a rack, all at once: no uplink. Across, four flows of 1e8 share an uplink of 2e8.
  for (const bool across : {false, true}) {
    const VirtualRun run = simulate(config, [&](Node& node) {
      const Rank self = node.endpoint().rank();
      const Rank peer = across ? (self + 4) % 8 : self ^ 1;
      exchange(node, peer, peer, 10'000'000);
      return time_now(node);
    });
    const double expected_s = across ? 2e-3 + 10e-3 + 0.2 / kTcpShare : 2e-3 + 0.1 / kTcpShare;
    for (size_t rank = 0; rank < 8; ++rank)
      EXPECT_NEAR(run.number(rank), expected_s, 1e-5) << across << rank;
  }
}

TEST(VirtualTime, NodesOfAHostTalkThroughMemory) {
  ClusterConfig config = virtual_cluster(4);
  config.nodes_per_host = 2;
  const VirtualRun run = simulate(config, [](Node& node) {
    in_body(!node.endpoint().open_window(64, 1));  // there are two hosts
    exchange(node, node.endpoint().rank() ^ 1, node.endpoint().rank() ^ 1, 10'000'000);
    return time_now(node);
  });
  EXPECT_NEAR(run.number(3), 500e-9 + 1e-3, 1e-8);
}

// The large one takes a second; the small ones behind it land long before.
TEST(VirtualTime, CompletesInTheOrderSent) {
  const VirtualRun run = simulate(virtual_cluster(2), [](Node& node) -> std::string {
    const std::vector<size_t> sizes{100'000'000, 8, 70'000, 1};
    std::vector<std::byte> buffer(100'000'000);
    std::vector<Handle> handles;
    for (const size_t size : sizes)
      handles.push_back(node.endpoint().rank() == 0
                            ? node.endpoint().send(1, tag(1), {buffer.data(), size})
                            : node.endpoint().receive(0, tag(1), buffer));
    std::string order;
    for (size_t i = 0; i < sizes.size(); ++i)
      order += std::to_string(node.endpoint().wait_any(handles, 100).first);
    return order;
  });
  EXPECT_EQ(run.result(1), "0123");
  EXPECT_EQ(run.result(0).substr(0, 2), "13");  // eager ones are done at once
}

// Any source, sizes on both sides of the eager limit, stragglers, contention: all the same again.
TEST(VirtualFabric, IsDeterministic) {
  ClusterConfig config = virtual_cluster(12);
  config.racks = 3;
  StragglerConfig random;
  random.kind = StragglerKind::kRandom;
  random.distribution = Slowness::kLognormal;
  config.stragglers = {random};
  const auto body = [](Node& node) {
    const Rank self = node.endpoint().rank();
    const int nodes = node.endpoint().size();
    std::string seen;
    std::vector<std::byte> buffer(100'000);
    for (uint64_t step = 0; step < 20; ++step) {
      node.clock().charge({1e6 * static_cast<double>(self + 1), 0});
      std::vector<Handle> handles;
      for (Rank to = 0; to < nodes; ++to) {
        const size_t size = 1 + (static_cast<size_t>(self * 7 + to) * 4999 + step * 777) % 90'000;
        handles.push_back(node.endpoint().send(to, tag(step), {buffer.data(), size}));
      }
      for (int i = 0; i < nodes; ++i) {
        std::vector<std::byte> in(100'000);
        Handle handle = node.endpoint().receive(kAnyRank, tag(step), in);
        const Completion completion = node.endpoint().wait(handle, 100);
        seen += fmt::format("{}:{}@{} ", completion.peer, completion.bytes, time_now(node));
      }
      for (Handle& handle : handles) finish(node, handle);
    }
    return seen;
  };
  const VirtualRun first = simulate(config, body), again = simulate(config, body);
  for (size_t rank = 0; rank < 12; ++rank) EXPECT_EQ(first.result(rank), again.result(rank));
  EXPECT_EQ(first.joules, again.joules);
}

TEST(VirtualFabric, CostOnlyTouchesNoPayload) {
  ClusterConfig config = virtual_cluster(2);
  config.cost_only = true;
  const VirtualRun run = simulate(config, [](Node& node) {
    // Not even mapped: a copy would crash.
    const auto nowhere = reinterpret_cast<std::byte*>(uintptr_t{4096});
    for (const size_t size : {size_t{1000}, size_t{1'000'000'000}}) {
      const Rank peer = 1 - node.endpoint().rank();
      Handle received = node.endpoint().receive(peer, tag(size), {nowhere, size});
      send(node, peer, tag(size), {nowhere, size});
      finish(node, received);
    }
    in_body(!node.clock().arithmetic().is_done());
    return time_now(node);
  });
  EXPECT_NEAR(run.number(0), 4e-3 + (10 + 1e-5) / kTcpShare, 1e-4);
}

TEST(VirtualFabric, PollingPassesTime) {
  const VirtualRun run = simulate(virtual_cluster(2), [](Node& node) -> std::string {
    std::vector<std::byte> buffer(8);
    if (node.endpoint().rank() == 0) {
      node.clock().sleep(0.01);
      send(node, 1, tag(1), buffer);
      return "";
    }
    Handle handle = node.endpoint().receive(0, tag(1), buffer);
    while (!node.endpoint().test(handle)) {
    }
    return time_now(node);
  });
  EXPECT_NEAR(run.number(1), 0.012, 1e-4);
}

// SimGrid ends its process when it is in doubt, and so may a body. The caller goes on.
TEST(VirtualFabric, TurnsTheDeathOfASimulationIntoAnError) {
  const auto dies = [] {
    simulate(virtual_cluster(2), [](Node& node) -> std::string {
      if (node.endpoint().rank() == 1) std::abort();
      return "";
    });
  };
  EXPECT_THROW(dies(), Error);
  EXPECT_EQ(simulate(virtual_cluster(1), [](Node&) { return "alive"; }).result(0), "alive");
}

TEST(VirtualFabric, ExportsItsMaker) {
  const void* symbol = dlsym(RTLD_DEFAULT, "tutti_make_virtual_fabric");
  ASSERT_NE(symbol, nullptr);
  EXPECT_EQ(*static_cast<const MakeFabric*>(symbol), &make_virtual_fabric);
}

// 1,000 nodes, each talking to ten others at distances of powers of two, as a butterfly does.
TEST(VirtualFabric, SimulatesAThousandNodes) {
  ClusterConfig config = virtual_cluster(1000);
  config.cost_only = true;
  const auto body = [](Node& node) {
    const Rank self = node.endpoint().rank();
    const int nodes = node.endpoint().size();
    for (uint64_t step = 0; step < 3; ++step) {
      node.clock().charge({1e6, 0});
      for (int distance = 1; distance < nodes; distance *= 2) {
        const Tag what = tag(step * 16 + static_cast<uint64_t>(distance));
        const size_t size = 4'000'000 / static_cast<size_t>(distance);
        const std::span<std::byte> nothing(static_cast<std::byte*>(nullptr), size);
        Handle received = node.endpoint().receive((self + nodes - distance) % nodes, what, nothing);
        send(node, (self + distance) % nodes, what, nothing);
        finish(node, received);
      }
    }
    in_body(node.endpoint().traffic().messages_sent == 30);
    return time_now(node);
  };
  const VirtualRun first = simulate(config, body), again = simulate(config, body);
  double bytes = 0;
  for (int distance = 1; distance < 1000; distance *= 2) bytes += 4e6 / distance;
  const double expected_s = 3 * (1e-3 + 10 * 2e-3 + bytes / (1e8 * kTcpShare));
  for (size_t rank = 0; rank < 1000; ++rank) {
    ASSERT_EQ(first.result(rank), again.result(rank));
    ASSERT_NEAR(first.number(rank), expected_s, 1e-4);
  }
}

}  // namespace
}  // namespace tutti
