#include "strategies/parameter_server/ring.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/error.h"

namespace tutti::parameter_server {

Ring::Ring(Node& node, Rank first_server, const Config& config)
    : node_(node),
      first_(first_server),
      servers_(static_cast<int>(config.servers)),
      replicas_(static_cast<int>(config.replicas)),
      per_server_(static_cast<int>(shards_of(config) / config.servers)) {}

bool Ring::is_alive(int server) const {
  const Rank rank = first_ + server;
  return rank == node_.endpoint().rank() || node_.membership().alive(rank);
}

bool Ring::is_left(const Member& member) const {
  return is_alive(member.rank - first_) &&
         node_.membership().incarnation(member.rank) == member.incarnation;
}

std::vector<Rank> Ring::alive() const {
  std::vector<Rank> ranks;
  for (int server = 0; server < servers_; ++server)
    if (is_alive(server)) ranks.push_back(first_ + server);
  return ranks;
}

std::vector<Member> Ring::left_of(std::span<const Member> members) const {
  std::vector<Member> left;
  std::copy_if(members.begin(), members.end(), std::back_inserter(left),
               [&](const Member& member) { return is_left(member); });
  return left;
}

Order Ring::first_order(int shard) const {
  Order order;
  for (int place = 0; place <= replicas_; ++place)
    order.members.push_back({first_ + (home_of(shard) + place) % servers_, 0});
  return order;
}

std::vector<std::vector<Member>> Ring::balanced(std::span<const size_t> sizes) const {
  std::vector<size_t> load(static_cast<size_t>(servers_));
  std::vector<int> heads(sizes.size(), -1);
  std::vector<size_t> homeless;
  for (size_t shard = 0; shard < sizes.size(); ++shard) {
    const int home = home_of(static_cast<int>(shard));
    if (!is_alive(home)) {
      homeless.push_back(shard);
      continue;
    }
    heads[shard] = home;
    load[static_cast<size_t>(home)] += sizes[shard];
  }
  // The largest first, each to who has least; of equals to the next one, which may have a copy.
  std::stable_sort(homeless.begin(), homeless.end(),
                   [&](size_t a, size_t b) { return sizes[a] > sizes[b]; });
  for (const size_t shard : homeless) {
    int best = -1;
    for (int step = 1; step < servers_; ++step) {
      const int server = (home_of(static_cast<int>(shard)) + step) % servers_;
      if (is_alive(server) &&
          (best < 0 || load[static_cast<size_t>(server)] < load[static_cast<size_t>(best)]))
        best = server;
    }
    if (best < 0) continue;
    heads[shard] = best;
    load[static_cast<size_t>(best)] += sizes[shard];
  }
  std::vector<std::vector<Member>> chains(sizes.size());
  for (size_t shard = 0; shard < sizes.size(); ++shard)
    for (int step = 0; step < servers_ && heads[shard] >= 0; ++step) {
      const int server = (heads[shard] + step) % servers_;
      if (!is_alive(server) || chains[shard].size() > static_cast<size_t>(replicas_)) continue;
      chains[shard].push_back({first_ + server, node_.membership().incarnation(first_ + server)});
    }
  return chains;
}

void throw_all_lost(Rank home) {
  throw FabricError(FabricError::Kind::kPeerLost, home,
                    fmt::format("every server is lost that had a copy of the parameters of rank "
                                "{}; raise strategy.replicas to survive more losses at once",
                                home));
}

}  // namespace tutti::parameter_server
