// What happens within a host of a virtual cluster: caches, copies, and what a step costs besides.
#include "fabric/exchange.h"
#include "tests/fabric/virtual_cluster.h"

namespace tutti {
namespace {

// What the caches hold of the memory that work ranges over moves faster. By default they hold
// nothing.
TEST(VirtualCosts, CachesMoveTheirShareFaster) {
  ClusterConfig config = virtual_cluster(1);  // 10 GB/s
  const auto seconds = [&](double bytes, double range) {
    const Work work{.flops = 0, .memory_bytes = bytes, .range_bytes = range};
    return simulate(config,
                    [&](Node& node) {
                      node.clock().charge(work);
                      return time_now(node);
                    })
        .number(0);
  };
  EXPECT_NEAR(seconds(1e6, 0), 1e-4, 1e-9);
  config.cache_bytes = 4e6;
  config.cache_bandwidth = 100e9;
  EXPECT_NEAR(seconds(1e6, 0), 1e-5, 1e-9);
  EXPECT_NEAR(seconds(1e6, 16e6), 0.25 * 1e-5 + 0.75 * 1e-4, 1e-9);
  EXPECT_NEAR(seconds(16e6, 0), 0.25 * 16e-5 + 0.75 * 16e-4, 1e-9);
}

// A step costs something besides its passes, where a cluster says so; a slower core takes longer.
TEST(VirtualCosts, StepsHaveACostOfTheirOwn) {
  ClusterConfig config = virtual_cluster(2);
  const auto three_steps = [&](size_t rank) {
    return simulate(config,
                    [](Node& node) {
                      for (int i = 0; i < 3; ++i) node.clock().begin_step();
                      return time_now(node);
                    })
        .number(rank);
  };
  EXPECT_EQ(three_steps(0), 0);
  config.loop_overhead_s = 1e-5;
  config.speed_factors = {1, 0.5};
  const double here = kReferenceFlops / config.speed_flops;
  EXPECT_NEAR(three_steps(0), 3 * here * 1e-5, 1e-9);
  EXPECT_NEAR(three_steps(1), 6 * here * 1e-5, 1e-9);
}

// When the last of `count` messages of a megabyte from rank 0 to rank 1 of its host is there.
double last_arrives_s(const ClusterConfig& config, size_t count) {
  const auto body = [&](Node& node) {
    std::vector<std::byte> memory(1'000'000);
    std::vector<Handle> handles;
    for (size_t i = 0; i < count; ++i) {
      const Tag tag(Purpose::kUser, Tag::wrapped(i));
      handles.push_back(node.endpoint().rank() == 0 ? node.endpoint().send(1, tag, memory)
                                                    : node.endpoint().receive(0, tag, memory));
    }
    for (Handle& handle : handles) require_done(node, node.endpoint().wait(handle, 10));
    return time_now(node);
  };
  return simulate(config, body).number(1);
}

// Messages within a host each have the memory's bandwidth, as if they had a core each, unless the
// cluster says what a node can copy: then it copies one after the other.
TEST(VirtualCosts, MessagesOfAHostTakeTurnsWhereACopyHasABandwidth) {
  ClusterConfig config = virtual_cluster(2);
  config.nodes_per_host = 2;
  EXPECT_NEAR(last_arrives_s(config, 4), 1e-4 + 500e-9, 1e-8);
  config.host_latency_s = 2e-6;
  EXPECT_NEAR(last_arrives_s(config, 4), 1e-4 + 2e-6, 1e-8);
  config.host_bandwidth = 1e9;
  EXPECT_NEAR(last_arrives_s(config, 1), 1e-3 + 2e-6, 1e-8);
  EXPECT_NEAR(last_arrives_s(config, 4), 4e-3 + 2e-6, 1e-8);
}

}  // namespace
}  // namespace tutti
