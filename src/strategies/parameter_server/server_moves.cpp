// How a shard moves from server to server.
//
// The head of its chain looks at who is alive and at what would be balanced then (ring.h), and
// takes one step at a time towards that: a server that lacks the shard becomes the chain's last,
// with all of the state; when it has that, the chain is put in the order that is wanted, in which
// the head may be another and surplus members are left out. Both are entries of the chain, so
// nothing that was acknowledged is lost and nothing is executed twice. Workers hear from the new
// head and say again what was not answered, as after a loss (server_takeover.cpp).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "strategies/parameter_server/server.h"

namespace tutti::parameter_server {

void Server::rebalance(const std::vector<Member>& target) {
  if (!leads() || chain_.is_changing() || !chain_.is_complete() || target.empty()) return;
  // Near the end nobody gains by it, and some have left.
  const bool ends = std::any_of(workers_.begin(), workers_.end(),
                                [](const Worker& worker) { return worker.finished; });
  if (ends || closed_ || diverged_) return;
  const std::vector<Member> now = ring_.left_of(chain_.order().members);
  if (now == target) return;
  const auto has = [](const std::vector<Member>& members, const Member& member) {
    return std::find(members.begin(), members.end(), member) != members.end();
  };
  Order order{chain_.order().epoch + 1, now};
  Entry entry{.kind = Entry::kOrder};
  const auto missing = std::find_if(target.begin(), target.end(),
                                    [&](const Member& member) { return !has(now, member); });
  if (missing == target.end()) {
    // Gradients of an open step would have to be sent once more.
    if (!gathered_.empty() && target.front() != now.front()) return;
    order.members = target;
  } else if (now.size() < kMostMembers) {
    entry.kind = Entry::kAdded;
    order.members.push_back(*missing);
  } else {  // first there has to be room
    std::erase_if(order.members, [&](const Member& member) {
      return member != now.front() && !has(target, member);
    });
  }
  entry.set(order);
  input(entry);
}

Notice Server::notice() const {
  const Order& order = chain_.order();
  Notice notice{.shard = index_, .epoch = order.epoch, .led_since = led_since_};
  notice.count = static_cast<uint32_t>(order.members.size());
  std::copy(order.members.begin(), order.members.end(), notice.members.begin());
  return notice;
}

void Server::hear_of(const Notice& notice) {
  chain_.hear_of(notice.epoch);
  look_at_chain();
}

// Takes note of what has become of the chain.
void Server::look_at_chain() {
  release();
  if (led_ && !leads()) hand_over();
  if (leads() && !led_) {
    local_.count(chain_.order().epoch > told_ ? "shards_moved" : "shards_taken_over");
    led_since_ = chain_.order().epoch;
    told_ = 0;  // by whom, if anybody, is not known
    behind_ = true;
    take_over();
  }
  led_ = leads();
  if (!led_) told_ = chain_.order().epoch;
  if (chain_.is_changing()) behind_ = true;
  if (!led_ || chain_.is_changing()) return;
  if (chain_.order().epoch > told_ && chain_.is_complete()) {
    told_ = chain_.order().epoch;
    tell_(notice(), kAnyRank);
  }
  if (std::exchange(behind_, false)) catch_up();
}

// With what came while it could not be taken.
void Server::catch_up() {
  for (Input& input : std::exchange(waiting_, {}))
    this->input(input.entry, std::move(input.decided));
  look_at_workers();
  forget_undelivered();
  for (Deferred& early : std::exchange(deferred_, {}))
    handle(early.from, early.request, early.bytes, std::move(early.decided));
}

// Another one leads. What workers have begun to say here they say to it again.
void Server::hand_over() {
  context_.log.info(fmt::format("hands over shard {} at version {}", index_, version_));
  for (size_t i = 0; i < workers_.size(); ++i) {
    abandon_push(workers_[i], static_cast<int>(i));
    workers_[i].queue.clear();
    workers_[i].heard = false;
  }
  for (Gathered& gathered : gathered_) free(std::exchange(gathered.slot, kNoSlot));
  waiting_.clear();
  outputs_.clear();
}

void Server::save(Chain::Item& item) {
  Archive state;
  Order order = chain_.order();
  int64_t optimizer_steps = shard_.optimizer_steps();
  state(order.epoch, order.members, optimizer_steps);
  archive(state);
  if (shard_.rows()) save_rows(state);
  item.rest = state.take();
  item.values = shard_.rows() ? shard_.rows()->save(true) : shard_.save();
}

void Server::restore(const Chain::Item& item) {
  Archive state(item.rest);
  Order order;
  int64_t optimizer_steps = 0;
  state(order.epoch, order.members, optimizer_steps);
  archive(state);
  if (shard_.rows())
    restore_rows(state, item.values.span());
  else
    shard_.restore(item.values.span(), optimizer_steps);
  context_.log.info(fmt::format("has shard {} from version {} on", index_, version_));
  told_ = order.epoch;
  chain_.begin_at(item.entry.index, std::move(order));
}

// Everything that the next input depends on but the chain and the parameters. Gradients that were
// gathered, and connections, are the head's alone.
void Server::archive(Archive& archive) {
  archive(decisions_, version_, samples_, kept_, to_keep_, keep_at_, diverged_, closed_);
  for (Worker& worker : workers_) worker.archive(archive);
  uint64_t gathered = gathered_.size(), bulletins = bulletins_.size();
  archive(gathered, bulletins);
  gathered_.resize(gathered);
  bulletins_.resize(bulletins);
  for (Gathered& one : gathered_) archive(one.push, one.worker);
  for (Bulletin& one : bulletins_) archive(one.index, one.request, one.decided);
  consistency_->archive(archive);
  means_.archive(archive);
  if (coordinates()) coordinator_->archive(archive);
  std::map<std::string, int64_t> counters = context_.recorder.counters();
  std::vector<EvaluationRow> evaluations = context_.recorder.evaluations();
  archive(counters, evaluations);
  if (!archive.reading()) return;
  context_.recorder = Recorder();
  for (const auto& [name, count] : counters) context_.recorder.count(name, count);
  for (const EvaluationRow& row : evaluations) context_.recorder.evaluation(row);
}

}  // namespace tutti::parameter_server
