// A server's node: one loop over everything that its shards wait for.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "strategies/parameter_server/held_shards.h"
#include "strategies/parameter_server/postbox.h"

namespace tutti::parameter_server {

class ServerNode {
 public:
  ServerNode(Context& context, const Config& config);
  void run();

 private:
  // How long a server stays when all is done but the head of its chain was lost before it could say
  // so: workers whose goodbye it had not answered ask again at once.
  static constexpr double kLinger_s = 1;
  struct Local {
    int shard;
    Request request;
    std::vector<Decided> decided;
  };

  void wait_for_news();
  void look_at_members();
  void look_at_servers(Rank joined);
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
  void deliver_locally();
  bool over();
  void dismiss_latecomers();
  bool nobody_needs_it() const;

  bool is_worker(Rank rank) const { return rank >= 0 && rank < ring_.first_server(); }

  Context& context_;
  Node& node_;
  const Config& config_;
  Ring ring_;
  Inbox inbox_;
  Postbox posts_;
  bool joins_late_;
  HeldShards shards_;
  std::vector<std::byte> request_, entry_;  // what arrives next
  std::vector<std::byte> notice_;
  std::byte nothing_{};
  std::deque<Local> local_;  // bulletins from one shard here to another
  double silent_s_ = 0;  // time waited for anybody; a clock would also count time while stopped
  double over_since_s_ = -1;
  bool told_over_ = false;
  bool repeats_bulletins_ = false;  // a shard here has a new head: others hear of it by a notice
  bool heard_ = false;              // of anybody
};

}  // namespace tutti::parameter_server
