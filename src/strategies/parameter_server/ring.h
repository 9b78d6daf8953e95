// Which servers and shards there are, and who should hold which.
//
// Each server is the home of some shards and serves them; the `replicas` servers after it, around
// the ring, keep copies. Shards whose home is lost are spread over those that are left, so that
// everybody has about as many bytes to serve. Who holds a shard at the moment is its chain's own
// business (chain.h), which follows this function of who is alive.
#pragma once

#include <span>
#include <vector>

#include "strategies/parameter_server/config.h"
#include "strategies/parameter_server/member.h"

namespace tutti::parameter_server {

class Ring {
 public:
  Ring(Node& node, Rank first_server, const Config& config);

  int servers() const { return servers_; }
  int replicas() const { return replicas_; }
  int shards() const { return servers_ * per_server_; }
  Rank first_server() const { return first_; }
  bool is_server(Rank rank) const { return rank >= first_ && rank < first_ + servers_; }

  // At the start.
  Order first_order(int shard) const;
  // When those are there who are alive now: for each shard, of these sizes, its chain.
  std::vector<std::vector<Member>> balanced(std::span<const size_t> sizes) const;

  std::vector<Rank> alive() const;  // servers
  bool is_left(const Member& member) const;
  std::vector<Member> left_of(std::span<const Member> members) const;

  // What tags of this shard's messages are told apart by: a server may hold several shards.
  uint64_t stream(int shard, uint64_t sequence) const {
    return sequence * static_cast<uint64_t>(shards()) + static_cast<uint64_t>(shard);
  }

 private:
  int home_of(int shard) const { return shard / per_server_; }
  bool is_alive(int server) const;

  Node& node_;
  Rank first_;
  int servers_, replicas_, per_server_;
};

// Why there is nobody left to ask about a shard.
[[noreturn]] void throw_all_lost(Rank home);

}  // namespace tutti::parameter_server
