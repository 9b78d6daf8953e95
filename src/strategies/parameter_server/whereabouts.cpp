#include "strategies/parameter_server/whereabouts.h"

#include <algorithm>

#include "core/error.h"

namespace tutti::parameter_server {
namespace {

// How soon everybody has heard who holds a shard after those are lost who did, if it does not
// answer.
constexpr double kNews_s = 2;

}  // namespace

Whereabouts::Whereabouts(Node& node, const Ring& ring, int shard)
    : node_(node), ring_(ring), shard_(shard), order_(ring.first_order(shard)) {
  const bool has_heirs = ring_.replicas() > 0;
  if (has_heirs) listen();
  const std::vector<Member> left = ring_.left_of(order_.members);
  if (!has_heirs || (!left.empty() && left.front() == order_.members.front()))
    server_ = order_.members.front().rank;
}

bool Whereabouts::is_left() const {
  const auto head = std::find_if(order_.members.begin(), order_.members.end(),
                                 [&](const Member& member) { return member.rank == server_; });
  return head != order_.members.end() && ring_.is_left(*head);
}

void Whereabouts::lose(Rank server) {
  std::erase_if(order_.members, [&](const Member& member) { return member.rank == server; });
}

void Whereabouts::turn() {
  order_.members = ring_.left_of(order_.members);
  if (order_.members.empty()) ask_everybody();
  while (order_.members.empty()) await_notice();
  server_ = order_.members.front().rank;
  asked_since_ = order_.epoch;
  asking_.clear();
}

void Whereabouts::listen() {
  listening_ = node_.endpoint().receive(kAnyRank, notice_tag(shard_),
                                        std::as_writable_bytes(std::span<Notice>(&notice_, 1)));
}

// What was said, if it makes sense, and listens for more.
std::optional<Notice> Whereabouts::take_notice(const Completion& completion) {
  const Notice notice = notice_;
  listen();
  if (completion.state != State::kDone ||
      !fault_of(notice, completion.bytes, completion.peer, ring_.first_server(), ring_.servers(),
                ring_.shards())
           .empty())
    return std::nullopt;
  if (notice.over)
    throw FabricError(FabricError::Kind::kPeerLost, completion.peer,
                      "training was over when this worker came back");
  return notice;
}

// The chain may have been changed by those that are lost now. Who is in it says so, and others that
// they are not; who is about to get the shard says nothing until it has it.
void Whereabouts::ask_everybody() {
  question_ = {};
  question_.flags = Request::kWhere;
  question_.shard = shard_;
  asking_.clear();
  asked_ = ring_.alive();
  for (const Rank server : asked_)
    asking_.push_back(node_.endpoint().send(
        server, request_tag(), std::as_bytes(std::span<const Request>(&question_, 1))));
}

void Whereabouts::await_notice() {
  const Rank home = ring_.first_order(shard_).members.front().rank;
  if (asked_.empty()) throw_all_lost(home);
  const Completion completion = node_.endpoint().wait(listening_, kNews_s);
  if (completion.state == State::kTimedOut) throw_all_lost(home);
  const std::optional<Notice> notice = take_notice(completion);
  if (!notice) return;
  if (notice->count == 0)
    std::erase(asked_, completion.peer);
  else if (notice->epoch >= order_.epoch)
    order_ = {notice->epoch, ring_.left_of(notice->order().members)};
}

bool Whereabouts::noticed(const Completion& completion) {
  const std::optional<Notice> notice = take_notice(completion);
  if (!notice || notice->epoch <= order_.epoch) return false;
  order_ = notice->order();
  const std::vector<Member> left = ring_.left_of(order_.members);
  // The same server may have led, and not, and lead again: it has forgotten what was begun.
  if (!left.empty() && left.front().rank == server_ && asked_since_ >= notice->led_since)
    return false;
  return true;
}

}  // namespace tutti::parameter_server
