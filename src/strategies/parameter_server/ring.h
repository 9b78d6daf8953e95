// Which servers hold which shard.
//
// Server i serves shard i; the `replicas` servers after it, around the ring, keep copies. The first
// of these that is left is the shard's head: when it is lost the next one takes over. A server that
// came back has forgotten everything and is not counted.
#pragma once

#include <algorithm>
#include <vector>

#include "fabric/node.h"

namespace tutti::parameter_server {

class Ring {
 public:
  Ring(Node& node, Rank first_server, int servers, int replicas)
      : node_(node), first_(first_server), servers_(servers), replicas_(replicas) {}

  int servers() const { return servers_; }
  int replicas() const { return replicas_; }
  Rank first_server() const { return first_; }

  // Place of `rank` in the chain of `shard`, lost members counted; -1: it has no part in it.
  int place(int shard, Rank rank) const {
    if (rank < first_ || rank >= first_ + servers_) return -1;
    const int place = (rank - first_ - shard + servers_) % servers_;
    return place <= replicas_ ? place : -1;
  }
  // The members of the chain that are left, its head first.
  std::vector<Rank> chain(int shard) const {
    std::vector<Rank> members;
    for (int place = 0; place <= replicas_; ++place) {
      const Rank rank = first_ + (shard + place) % servers_;
      if (replicas_ == 0 || is_left(rank)) members.push_back(rank);
    }
    return members;
  }
  // kAnyRank: every copy is lost.
  Rank head(int shard) const {
    const std::vector<Rank> members = chain(shard);
    return members.empty() ? kAnyRank : members.front();
  }
  // What tags of this shard's messages are told apart by: a server may hold several shards.
  uint64_t stream(int shard, uint64_t sequence) const {
    return sequence * static_cast<uint64_t>(servers_) + static_cast<uint64_t>(shard);
  }

 private:
  bool is_left(Rank rank) const {
    if (rank == node_.endpoint().rank()) return node_.membership().incarnation(rank) == 0;
    return node_.membership().alive(rank) && node_.membership().incarnation(rank) == 0;
  }

  Node& node_;
  Rank first_;
  int servers_, replicas_;
};

}  // namespace tutti::parameter_server
