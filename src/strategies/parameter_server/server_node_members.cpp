// Who is alive, and who holds which shard because of that.
#include <fmt/format.h>

#include <cstring>

#include "core/error.h"
#include "strategies/parameter_server/server_node.h"

namespace tutti::parameter_server {
namespace {

// How long it takes at most until everybody has heard of a chain that was changed before all that
// are known to be in it were lost.
constexpr double kNews_s = 2;

}  // namespace

void ServerNode::look_at_members() {
  bool worker_changed = false;
  while (const std::optional<MemberEvent> event = node_.membership().next_event()) {
    if (is_worker(event->rank)) {
      worker_changed = true;
    } else if (event->kind == MemberEvent::Kind::kLost) {
      if (config_.replicas == 0)
        throw FabricError(FabricError::Kind::kPeerLost, event->rank,
                          fmt::format("lost rank {}, a server, and nobody has a copy of its "
                                      "parameters; strategy.replicas = 1 would have kept one",
                                      event->rank));
      context_.log.warn(fmt::format("rank {}, a server, is lost", event->rank));
      look_at_servers(kAnyRank);
    } else if (config_.replicas > 0) {
      context_.log.info(fmt::format("rank {}, a server, is back", event->rank));
      watch(event->rank);
      look_at_servers(event->rank);
    }
  }
  if (worker_changed)
    for (const auto& [shard, own] : servers_) own->server->receiver().look_at_workers();
}

// Chains wait for each other: nobody should have to look by itself whether they are still there.
void ServerNode::watch(Rank server) {
  if (server == node_.endpoint().rank() || !node_.membership().alive(server)) return;
  inbox_.expect(server, life_tag(), std::span(&nothing_, 1),
                {.kind = Arrival::kLoss, .peer = server});
}

void ServerNode::look_at_servers(Rank joined) {
  over_since_s_ = -1;
  for (const auto& [shard, own] : servers_) {
    Server& server = *own->server;
    server.replication().look_at_servers();
    server.publish_again();  // the head that a bulletin was sent to may have been lost with it
    if (joined != kAnyRank && server.replication().leads())
      tell(server.replication().notice(), joined);
  }
  target_ = ring_.balanced(sizes_);
}

void ServerNode::rebalance() {
  if (target_.empty()) return;  // nobody was ever lost
  for (size_t shard = 0; shard < target_.size(); ++shard)
    if (Server* server = find(static_cast<int>(shard))) server->rebalance(target_[shard]);
  // A chain may have been changed by members that are lost now, and its news be on the way.
  bool all_held = true;
  for (int shard = 0; shard < ring_.shards(); ++shard)
    if (holders(shard).empty()) {
      all_held = false;
      if (unheld_since_s_ >= 0 && node_.clock().now() - unheld_since_s_ > kNews_s)
        throw_all_lost(ring_.first_order(shard).members.front().rank);
    }
  if (all_held)
    unheld_since_s_ = -1;
  else if (unheld_since_s_ < 0)
    unheld_since_s_ = node_.clock().now();
}

std::vector<Member> ServerNode::holders(int shard) {
  const Server* server = find(shard);
  const bool has_part = server && server->replication().has_part();
  return ring_.left_of(has_part ? server->replication().chain().order().members
                                : known_[static_cast<size_t>(shard)].members);
}

// Others have its shards now.
void ServerNode::remove_retired() {
  for (auto it = servers_.begin(); it != servers_.end();) {
    const Replication& replication = it->second->server->replication();
    if (replication.has_part() || replication.is_joining()) {
      ++it;
      continue;
    }
    known_[static_cast<size_t>(it->first)] = replication.chain().order();
    const int shard = it->first;
    inbox_.forget([&](const Arrival& arrival) { return arrival.shard == shard; });
    it = servers_.erase(it);
  }
}

void ServerNode::tell(const Notice& notice, Rank to) {
  if (to == kAnyRank) repeats_bulletins_ = true;
  std::vector<std::byte> message(sizeof(Notice));
  std::memcpy(message.data(), &notice, sizeof(Notice));
  for (Rank rank = 0; rank < node_.endpoint().size(); ++rank) {
    if (rank == node_.endpoint().rank() || (to != kAnyRank && rank != to)) continue;
    if (!node_.membership().alive(rank)) continue;
    post(rank, is_worker(rank) ? notice_tag(notice.shard) : notice_tag(), message);
  }
}

void ServerNode::answer_where(Rank worker, int shard) {
  const Server* server = find(shard);
  const Replication* replication = server ? &server->replication() : nullptr;
  if (replication && replication->is_joining()) return;  // it tells everybody when it is the head
  tell(replication && replication->has_part() ? replication->notice() : Notice{.shard = shard},
       worker);
}

void ServerNode::notice_arrived(const Completion& completion) {
  Notice notice;
  std::memcpy(&notice, notice_.data(), sizeof(notice));
  receive_notice();
  look_at_members();
  if (completion.state != State::kDone && completion.state != State::kTruncated) return;
  const std::string fault = completion.state == State::kDone
                                ? fault_of(notice, completion.bytes, completion.peer,
                                           ring_.first_server(), ring_.servers(), ring_.shards())
                                : "a message of another size";
  if (!fault.empty()) return refuse(completion.peer, fault);
  if (notice.count == 0) return;
  if (notice.over) {
    told_over_ = told_over_ || joins_late_;
    return;
  }
  Order& known = known_[static_cast<size_t>(notice.shard)];
  if (notice.epoch >= known.epoch) known = notice.order();
  if (Server* server = find(notice.shard)) server->replication().hear_of(notice);
  for (const auto& [shard, own] : servers_) own->server->publish_again();
}

}  // namespace tutti::parameter_server
