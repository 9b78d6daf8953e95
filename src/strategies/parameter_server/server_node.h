// A server's node: one loop over everything that its shards wait for. It serves its own shard, and
// keeps copies of those of the servers before it, any of which it may have to serve as well.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "strategies/parameter_server/server.h"

namespace tutti::parameter_server {

class ServerNode {
 public:
  ServerNode(Context& context, const Config& config);
  void run();

 private:
  struct Post {
    std::vector<std::byte> message;
    Handle sending;
  };
  struct Local {
    int shard;
    Request request;
    std::vector<Decided> decided;
  };

  void wait_for_news();
  void look_at_members();
  void receive_request();
  void receive_entry();
  void request_arrived(const Completion& completion);
  void entry_arrived(const Completion& completion);
  void refuse(Rank from, const std::string& why);
  void publish(const Request& request, const std::vector<Decided>& decided);
  void deliver_locally();
  bool over();
  void report();

  bool is_worker(Rank rank) const { return rank >= 0 && rank < ring_.first_server(); }
  Server* find(int shard);

  Context& context_;
  Node& node_;
  const Config& config_;
  Ring ring_;
  Inbox inbox_;
  // Counts what the copies do; it becomes part of the record when they have to serve.
  std::deque<Recorder> recorders_;
  std::deque<Context> contexts_;
  std::map<int, std::unique_ptr<Server>> servers_;  // by shard
  std::vector<std::byte> request_, entry_;          // what arrives next
  std::deque<Post> posts_;
  std::deque<Local> local_;  // bulletins from one shard here to another
  double heard_s_ = 0;
  double over_since_s_ = -1;
};

}  // namespace tutti::parameter_server
