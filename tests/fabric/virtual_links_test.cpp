// How flows share links: against all links solved anew at every event, which is what max-min
// fairness says, by the book.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "core/random.h"
#include "fabric/virtual/shared_links.h"
#include "tests/support/thorough.h"

namespace tutti::simulation {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Reference {
  struct Flow {
    SharedLinks::Route route;
    double bytes = 0, moves_s = 0, rate = 0;
    bool moves(double now_s) const { return moves_s <= now_s + 1e-9; }
    std::span<const SharedLinks::Link> links() const { return {route.links.data(), route.length}; }
  };
  std::vector<double> bandwidth;
  std::map<uint64_t, Flow> flows;
  double now_s = 0;

  // Progressive filling (Bertsekas and Gallager, "Data networks", 6.5.2) over all flows that move.
  void solve() {
    std::vector<double> left = bandwidth;
    std::vector<Flow*> open;
    for (auto& [id, flow] : flows) {
      flow.rate = 0;
      if (flow.moves(now_s)) open.push_back(&flow);
    }
    while (!open.empty()) {
      std::vector<double> weight(left.size());
      for (const Flow* flow : open)
        for (const SharedLinks::Link link : flow->links()) weight[link] += flow->route.weight;
      double level = kNever;
      for (size_t link = 0; link < left.size(); ++link)
        if (weight[link] > 0) level = std::min(level, left[link] / weight[link]);
      std::vector<Flow*> rest;
      std::vector<double> taken(left.size());
      for (Flow* flow : open) {
        bool stops = false;
        for (const SharedLinks::Link link : flow->links())
          stops = stops || left[link] / weight[link] <= level * (1 + 1e-9);
        if (!stops) {
          rest.push_back(flow);
          continue;
        }
        flow->rate = level * flow->route.weight;
        for (const SharedLinks::Link link : flow->links()) taken[link] += flow->rate;
      }
      for (size_t link = 0; link < left.size(); ++link)
        left[link] = std::max(0.0, left[link] - taken[link]);
      open = rest;
    }
  }

  double next_s() {
    solve();
    double next = kNever;
    for (const auto& [id, flow] : flows)
      next = std::min(next, !flow.moves(now_s) ? flow.moves_s : now_s + flow.bytes / flow.rate);
    return next;
  }

  std::vector<uint64_t> advance(double to_s) {
    std::vector<uint64_t> ended;
    for (auto& [id, flow] : flows)
      if (flow.moves(now_s)) flow.bytes -= flow.rate * (to_s - now_s);
    now_s = to_s;
    for (auto it = flows.begin(); it != flows.end();) {
      const bool done = it->second.rate > 0 && it->second.bytes <= 2e-9 * it->second.rate;
      if (done) ended.push_back(it->first);
      it = done ? flows.erase(it) : std::next(it);
    }
    return ended;
  }
};

// Up and down links of hosts in racks, of a few bandwidths, some slower than the rest.
struct Cluster {
  SharedLinks network;
  Reference reference;
  std::vector<std::pair<SharedLinks::Link, SharedLinks::Link>> hosts, racks;

  Cluster(int host_count, int rack_count, Random& random) {
    const auto wire = [&](double bandwidth) {
      reference.bandwidth.insert(reference.bandwidth.end(), 2, bandwidth);
      const SharedLinks::Link up = network.add_link(bandwidth);
      return std::pair(up, network.add_link(bandwidth));
    };
    for (int i = 0; i < host_count; ++i) hosts.push_back(wire(random.below(4) ? 100 : 40));
    for (int i = 0; i < rack_count; ++i) racks.push_back(wire(150));
  }

  SharedLinks::Route route(size_t a, size_t b) const {
    SharedLinks::Route route{
        .links = {hosts[a].first, hosts[b].second}, .length = 2, .latency_s = 0.001};
    if (racks.empty() || a % racks.size() == b % racks.size()) return route;
    route.links[route.length++] = racks[a % racks.size()].first;
    route.links[route.length++] = racks[b % racks.size()].second;
    route.weight = 0.7;
    route.latency_s = 0.002;
    return route;
  }
};

// Flows begin and end, some are stopped; both sides must agree on every rate and every end.
void compare(int hosts, int racks, int servers, uint64_t seed) {
  Random random(seed, Stream::kTest);
  Cluster cluster(hosts, racks, random);
  uint64_t next_id = 1;
  std::vector<uint64_t> alive;
  for (int event = 0; event < 400; ++event) {
    const double now_s = cluster.reference.now_s;
    const auto starts = random.below(alive.size() < 60 ? 4 : 2);
    for (uint64_t i = 0; i < starts; ++i) {
      auto a = static_cast<size_t>(random.below(uint64_t(hosts)));
      auto b = static_cast<size_t>(random.below(uint64_t(servers)));  // that many talk to
      if (a == b) b = (b + 1) % size_t(hosts);
      if (random.below(2)) std::swap(a, b);
      const SharedLinks::Route route = cluster.route(a, b);
      const double bytes = 1 + 100 * random.uniform();
      cluster.network.start(next_id, route, bytes, now_s);
      cluster.reference.flows[next_id] = {route, bytes, now_s + route.latency_s};
      alive.push_back(next_id++);
    }
    if (random.below(10) == 0 && !alive.empty()) {
      const uint64_t id = alive[random.below(alive.size())];
      ASSERT_NEAR(cluster.network.stop(id, now_s), cluster.reference.flows[id].bytes, 1e-5);
      cluster.reference.flows.erase(id);
      std::erase(alive, id);
    }
    const double expected_s = cluster.reference.next_s();
    const double next_s = cluster.network.next_s(now_s);
    for (const uint64_t id : alive)
      ASSERT_NEAR(cluster.network.rate(id), cluster.reference.flows[id].rate, 1e-6)
          << "seed " << seed << ", event " << event << ", flow " << id;
    if (!std::isfinite(expected_s)) {
      ASSERT_FALSE(std::isfinite(next_s));
      cluster.reference.now_s += 0.01;
      continue;
    }
    ASSERT_NEAR(next_s, expected_s, 1e-7);
    std::vector<uint64_t> ended = cluster.network.advance(next_s);
    std::vector<uint64_t> expected = cluster.reference.advance(next_s);
    std::sort(ended.begin(), ended.end());
    ASSERT_EQ(ended, expected) << "seed " << seed << ", event " << event;
    for (const uint64_t id : ended) std::erase(alive, id);
  }
}

TEST(Sharing, IsMaxMinFair) {
  for (uint64_t seed = 1; seed <= seeds(10, 300); ++seed) {
    compare(12, 0, 12, seed);  // everybody with everybody
    compare(20, 0, 2, seed);   // many with few
    compare(3, 0, 3, seed);
    compare(12, 3, 12, seed);  // and through racks
    compare(16, 4, 3, seed);
    if (testing::Test::HasFailure()) return;
  }
}

// A flow that was slowed down by another goes on with the bytes that it had left.
TEST(Sharing, KeepsWhatWasCarried) {
  SharedLinks network;
  const SharedLinks::Link link = network.add_link(100);
  network.start(1, {.links = {link}, .length = 1}, 100, 0);
  EXPECT_EQ(network.next_s(0), 0);
  EXPECT_TRUE(network.advance(0).empty());  // it begins to move
  EXPECT_DOUBLE_EQ(network.next_s(0), 1);
  network.start(2, {.links = {link}, .length = 1}, 25, 0.5);
  network.advance(0.5);
  EXPECT_DOUBLE_EQ(network.next_s(0.5), 1);  // 25 bytes at half the rate
  EXPECT_EQ(network.advance(1), std::vector<uint64_t>{2});
  EXPECT_DOUBLE_EQ(network.next_s(1), 1.25);  // 25 bytes are left, alone
  EXPECT_NEAR(network.stop(1, 1.1), 15, 1e-9);
  EXPECT_TRUE(network.empty());
  EXPECT_EQ(network.next_s(1.1), kNever);
}

// Through memory: at its own speed, whoever else there is.
TEST(Sharing, LeavesAloneWhatCrossesNoLink) {
  SharedLinks network;
  for (const uint64_t id : {1U, 2U}) network.start(id, {.latency_s = 0.5, .bound = 10}, 20, 0);
  EXPECT_DOUBLE_EQ(network.next_s(0), 2.5);
  EXPECT_NEAR(network.stop(2, 0.25), 20, 1e-9);
  EXPECT_FALSE(network.carries(2));
  EXPECT_EQ(network.advance(2.5), std::vector<uint64_t>{1});
  network.start(3, {.latency_s = 0.5, .bound = 10}, 20, 3);
  EXPECT_NEAR(network.stop(3, 4.5), 10, 1e-9);
  EXPECT_TRUE(network.empty());
}

// What is stopped at the moment at which it begins to move, or ends, leaves nothing behind.
TEST(Sharing, StopsWhatHasJustBegun) {
  SharedLinks network;
  const SharedLinks::Link link = network.add_link(100);
  for (const uint64_t id : {1U, 2U, 3U})
    network.start(id, {.links = {link}, .length = 1, .latency_s = 1}, 50, 0);
  EXPECT_NEAR(network.stop(1, 0.5), 50, 1e-9);
  EXPECT_TRUE(network.advance(1).empty());
  EXPECT_NEAR(network.stop(2, 1), 50, 1e-9);
  EXPECT_DOUBLE_EQ(network.next_s(1), 1.5);
  EXPECT_NEAR(network.stop(3, 1.5), 0, 1e-9);
  EXPECT_TRUE(network.empty());
  EXPECT_EQ(network.next_s(1.5), kNever);
}

TEST(Sharing, EndsInTheOrderOfTheStart) {
  SharedLinks network;
  const SharedLinks::Link link = network.add_link(100);
  for (uint64_t id = 9; id >= 5; --id) network.start(id, {.links = {link}, .length = 1}, 10, 0);
  network.advance(0);
  EXPECT_EQ(network.advance(network.next_s(0)), (std::vector<uint64_t>{9, 8, 7, 6, 5}));
}

}  // namespace
}  // namespace tutti::simulation
