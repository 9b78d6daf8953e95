// The solver of our own against SimGrid's: the same nodes, the same messages, the same times. Where
// messages begin at one moment SimGrid overlooks links, so there closed forms are the judge.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "core/random.h"
#include "tests/fabric/virtual_cluster.h"
#include "tests/support/thorough.h"

namespace tutti {
namespace {

// The times at which messages arrive, of all nodes, in order.
std::vector<double> arrivals(ClusterConfig config, NetworkSolver solver, const Fabric::Body& body) {
  config.network_solver = solver;
  config.cost_only = true;
  const VirtualRun run = simulate(config, body);
  std::vector<double> times;
  for (size_t rank = 0; rank < run.outcomes.size(); ++rank) {
    std::istringstream text(run.result(rank));
    for (double time_s = 0; text >> time_s;) times.push_back(time_s);
  }
  return times;
}

// Every node sends small and large messages to everybody, at times of its own, and more than the
// network can carry meanwhile.
std::string talk(Node& node, uint64_t seed) {
  constexpr uint64_t kMessages = 10;
  const Rank self = node.endpoint().rank();
  const int nodes = node.endpoint().size();
  Random random(seed, Stream::kTest, static_cast<uint32_t>(self));
  std::vector<Handle> received, sent;
  const auto nothing = [](size_t size) {
    return std::span<std::byte>(static_cast<std::byte*>(nullptr), size);
  };
  for (Rank from = 0; from < nodes; ++from)
    for (uint64_t i = 0; i < kMessages && from != self; ++i)
      received.push_back(
          node.endpoint().receive(from, Tag(Purpose::kUser, Tag::wrapped(i)), nothing(10'000'000)));
  for (uint64_t i = 0; i < kMessages; ++i)
    for (int distance = 1; distance < nodes; ++distance) {
      node.clock().sleep(0.001 * random.uniform());
      const double power = 2 + 4.5 * random.uniform();  // 100 bytes to 3 MB
      sent.push_back(node.endpoint().send((self + distance) % nodes,
                                          Tag(Purpose::kUser, Tag::wrapped(i)),
                                          nothing(static_cast<size_t>(std::pow(10, power)))));
    }
  std::string times;
  for (size_t i = 0; i < received.size(); ++i) {
    node.endpoint().wait_any(received, kForever);
    times += time_now(node) + " ";
  }
  for (Handle& handle : sent) finish(node, handle);
  return times;
}

// SimGrid rounds shares of links at 1e-5, so a message may take that much more or less, and
// messages behind it change places with others by as little.
TEST(VirtualSolver, GivesTheTimesOfSimGrid) {
  for (const int racks : {1, 3})
    for (uint64_t seed = 1; seed <= seeds(2, 30); ++seed) {
      ClusterConfig config = virtual_cluster(9);
      config.racks = racks;
      config.rack_bandwidth = 1.5e8;
      const auto body = [&](Node& node) { return talk(node, seed); };
      const std::vector<double> theirs = arrivals(config, NetworkSolver::kSimgrid, body);
      const std::vector<double> ours = arrivals(config, NetworkSolver::kIncremental, body);
      ASSERT_EQ(ours.size(), size_t{9 * 8 * 10});
      ASSERT_EQ(ours.size(), theirs.size());
      for (size_t i = 0; i < ours.size(); ++i)
        ASSERT_NEAR(ours[i], theirs[i], 1e-8 * theirs[i])
            << "message " << i << ", seed " << seed << ", " << racks << " racks";
      EXPECT_EQ(ours, arrivals(config, NetworkSolver::kIncremental, body)) << "another time";
    }
}

// Eight workers begin to send to four servers at one moment. Every server's link is full until the
// end, whoever else begins: no link carries more than it can.
TEST(VirtualSolver, SharesEveryLinkOfMessagesThatBeginTogether) {
  constexpr size_t kBytes = 1'000'000;
  ClusterConfig config = virtual_cluster(12);
  const auto body = [&](Node& node) {
    std::vector<std::byte> buffer(kBytes);
    std::vector<Handle> handles;
    const bool server = node.endpoint().rank() >= 8;
    for (Rank peer = server ? 0 : 8; peer < (server ? 8 : 12); ++peer) {
      const Tag tag(Purpose::kUser, 1);
      handles.push_back(server ? node.endpoint().receive(peer, tag, buffer)
                               : node.endpoint().send(peer, tag, buffer));
    }
    for (Handle& handle : handles) finish(node, handle);
    return time_now(node);
  };
  for (const NetworkSolver solver : {NetworkSolver::kIncremental, NetworkSolver::kSimgridFull}) {
    config.network_solver = solver;
    const VirtualRun run = simulate(config, body);
    for (size_t rank = 0; rank < 12; ++rank)
      EXPECT_NEAR(run.number(rank), 2e-3 + 8 * kBytes / (1e8 * kTcpShare), 1e-6)
          << rank << " by " << word_of(solver);
  }
}

}  // namespace
}  // namespace tutti
