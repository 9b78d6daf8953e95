// The shards that a server's node holds: its own, and copies of others, any of which it may have to
// serve as well. Which shards these are changes with who is alive; it knows who holds the others.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "strategies/parameter_server/server.h"

namespace tutti::parameter_server {

class HeldShards {
 public:
  // One that comes late has forgotten everything: with copies it waits until it is given a state.
  HeldShards(Context& context, const Config& config, const Ring& ring, Inbox& inbox,
             bool joins_late, Server::Publish publish, Replication::Tell tell);

  Server* find(int shard);
  Server& add(int shard, Order order);  // with an empty order it waits for the state
  std::vector<Server*> all() const;
  bool all_join() const;  // none of them has a state
  size_t elements(int shard) const { return sizes_[static_cast<size_t>(shard)]; }

  std::vector<Member> holders(int shard);  // as far as is known here
  void learn(const Notice& notice);
  // Who is alive has changed, and so has who should hold what.
  void aim() { target_ = ring_.balanced(sizes_); }
  // Takes the next steps towards that. Throws FabricError when nobody holds a shard any more.
  void rebalance();
  void remove_retired();  // others have these now
  void report();          // of the shards that it serves, what happened from the start

 private:
  // With replicas, a server counts by itself, and who serves in the end reports it.
  struct Own {
    Recorder recorder;
    std::unique_ptr<Context> context;
    std::unique_ptr<Server> server;
  };

  Context& context_;
  const Config& config_;
  const Ring& ring_;
  Inbox& inbox_;
  Server::Publish publish_;
  Replication::Tell tell_;
  std::map<int, std::unique_ptr<Own>> servers_;  // by shard
  std::vector<size_t> sizes_;                    // of the shards
  std::vector<Order> known_;                     // chains, as their heads have told
  std::vector<std::vector<Member>> target_;      // chains, as they should be
  double unheld_since_s_ = -1;                   // a shard that nobody is known to hold
};

}  // namespace tutti::parameter_server
