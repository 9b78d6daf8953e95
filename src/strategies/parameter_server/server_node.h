// A server's node: one loop over everything that its shards wait for. It serves shards of its own,
// and keeps copies of others, any of which it may have to serve as well. Which shards these are
// changes with who is alive.
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
  // How long a server stays when all is done but the head of its chain was lost before it could say
  // so: workers whose goodbye it had not answered ask again at once.
  static constexpr double kLinger_s = 1;
  struct Post {
    std::vector<std::byte> message;
    Handle sending;
  };
  struct Local {
    int shard;
    Request request;
    std::vector<Decided> decided;
  };

  void add_server(int shard, Order order);
  void wait_for_news();
  void look_at_members();
  void look_at_servers(Rank joined);
  void rebalance();
  void remove_retired();
  void receive_request();
  void receive_entry();
  void receive_notice();
  void watch(Rank server);
  void request_arrived(const Completion& completion);
  void answer_where(Rank worker, int shard);
  void entry_arrived(const Completion& completion);
  void notice_arrived(const Completion& completion);
  void refuse(Rank from, const std::string& why);
  void publish(const Request& request, const std::vector<Decided>& decided);
  void tell(const Notice& notice, Rank to);
  void post(Rank to, Tag tag, std::vector<std::byte> message);
  void deliver_locally();
  bool over();
  void dismiss_latecomers();
  bool nobody_needs_it() const;
  void report();

  bool is_worker(Rank rank) const { return rank >= 0 && rank < ring_.first_server(); }
  Server* find(int shard);
  std::vector<Member> holders(int shard);  // as far as is known here

  Context& context_;
  Node& node_;
  const Config& config_;
  Ring ring_;
  Inbox inbox_;
  // With replicas, a server counts by itself, and who serves in the end reports it.
  struct Own {
    Recorder recorder;
    std::unique_ptr<Context> context;
    std::unique_ptr<Server> server;
  };
  std::map<int, std::unique_ptr<Own>> servers_;  // by shard
  std::vector<size_t> sizes_;                    // of the shards
  std::vector<Order> known_;                     // chains, as their heads have told
  std::vector<std::vector<Member>> target_;      // chains, as they should be
  std::vector<std::byte> request_, entry_;       // what arrives next
  std::vector<std::byte> notice_;
  std::byte nothing_{};
  std::deque<Post> posts_;
  std::deque<Local> local_;  // bulletins from one shard here to another
  double silent_s_ = 0;  // time waited for anybody; a clock would also count time while stopped
  double over_since_s_ = -1;
  double unheld_since_s_ = -1;  // a shard that nobody is known to hold
  bool told_over_ = false;
  bool repeats_bulletins_ = false;  // a shard here has a new head: others hear of it by a notice
  bool joins_late_;
  bool heard_ = false;  // of anybody
};

}  // namespace tutti::parameter_server
