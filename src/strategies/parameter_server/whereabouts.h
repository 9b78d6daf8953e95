// Who has a shard, as a worker knows it: the order of its chain, what servers say about that, and
// the search for the shard when all are lost that were known to hold it.
#pragma once

#include <optional>
#include <vector>

#include "fabric/node.h"
#include "strategies/parameter_server/messages.h"
#include "strategies/parameter_server/ring.h"

namespace tutti::parameter_server {

class Whereabouts {
 public:
  // With replicas it listens for notices from now on.
  Whereabouts(Node& node, const Ring& ring, int shard);

  // Whom to ask; nobody until the first turn() where the first of the chain is lost already.
  Rank server() const { return server_; }
  uint32_t epoch() const { return order_.epoch; }
  // False when the server is lost, or not in the chain any more.
  bool is_left() const;
  void lose(Rank server);
  // Turns to the first that is left of the chain. Blocks until one is known, and throws when every
  // copy is lost.
  void turn();

  // A receive of what servers say about this shard's chain, under way with replicas, and what to
  // do when it has ended. True: it is time to turn to another server.
  Handle& notice() { return listening_; }
  bool noticed(const Completion& completion);

 private:
  void listen();
  std::optional<Notice> take_notice(const Completion& completion);
  void ask_everybody();
  void await_notice();

  Node& node_;
  const Ring& ring_;
  const int shard_;
  Order order_;               // of the chain, as far as is known
  Rank server_ = kAnyRank;    // its head
  uint32_t asked_since_ = 0;  // the epoch in which this worker turned to it
  Notice notice_;
  Handle listening_;
  // When all that are known to hold the shard are lost: who was asked about it and has not denied.
  std::vector<Rank> asked_;
  Request question_;
  std::vector<Handle> asking_;
};

}  // namespace tutti::parameter_server
