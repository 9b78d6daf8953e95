// Small messages of a server to others, which leave by themselves.
#pragma once

#include <deque>
#include <vector>

#include "strategies/parameter_server/messages.h"
#include "strategies/parameter_server/ring.h"

namespace tutti::parameter_server {

class Postbox {
 public:
  Postbox(Node& node, const Ring& ring) : node_(node), ring_(ring) {}

  // A bulletin of the coordinator to the head of a shard.
  void publish(Rank to, const Request& request, const std::vector<Decided>& decided);
  void tell(const Notice& notice, Rank to);  // kAnyRank: everybody that is alive
  void finish(double timeout_s);             // blocks until all have left, each for as long

 private:
  struct Post {
    std::vector<std::byte> message;
    Handle sending;
  };
  void post(Rank to, Tag tag, std::vector<std::byte> message);

  Node& node_;
  const Ring& ring_;
  std::deque<Post> posts_;
};

}  // namespace tutti::parameter_server
