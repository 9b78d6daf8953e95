#include "strategies/parameter_server/replication.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace tutti::parameter_server {

Replication::Replication(Node& node, Recorder& local, const Ring& ring, int shard, Order order,
                         Inbox& inbox, Replicated& replicated, Tell tell)
    : local_(local),
      ring_(ring),
      index_(shard),
      replicated_(replicated),
      tell_(std::move(tell)),
      chain_(node, ring, shard, std::move(order), inbox,
             [this](Chain::Item& item) { save(item); }),
      led_(leads()) {}

void Replication::input(Entry entry, std::vector<Decided> decided) {
  TUTTI_CHECK(!executing_);
  if (chain_.is_changing()) return void(waiting_.push_back({entry, std::move(decided)}));
  auto item = std::make_unique<Chain::Item>();
  entry.shard = index_;
  entry.index = chain_.number_next();
  item->entry = entry;
  item->decided = std::move(decided);
  executing_ = true;
  replicated_.execute(*item, false);
  executing_ = false;
  chain_.pass_on(std::move(item));
  entry.has_order() ? look_at_chain() : release();
}

void Replication::entry_arrived(Rank from, const Entry& entry, std::vector<Decided> decided) {
  chain_.receive(from, entry, std::move(decided));
  follow();
}

void Replication::update_arrived(const Arrival& arrival, const Completion& completion) {
  chain_.update_arrived(arrival, completion);
  follow();
}

void Replication::follow() {
  while (std::unique_ptr<Chain::Item> item = chain_.next()) {
    if (item->entry.kind == Entry::kState) {
      restore(*item);
      continue;
    }
    replicated_.execute(*item, true);
    chain_.pass_on(std::move(item));
  }
  look_at_chain();
}

void Replication::rebalance(const std::vector<Member>& target, bool keeps_head) {
  if (!takes_inputs() || !chain_.is_complete() || target.empty()) return;
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
    if (keeps_head && target.front() != now.front()) return;
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

Notice Replication::notice() const {
  const Order& order = chain_.order();
  Notice notice{.shard = index_, .epoch = order.epoch, .led_since = led_since_};
  notice.count = static_cast<uint32_t>(order.members.size());
  std::copy(order.members.begin(), order.members.end(), notice.members.begin());
  return notice;
}

void Replication::hear_of(const Notice& notice) {
  chain_.hear_of(notice.epoch);
  look_at_chain();
}

void Replication::look_at_servers() {
  chain_.look_at_members();
  look_at_chain();
}

// Takes note of what has become of the chain.
void Replication::look_at_chain() {
  release();
  if (led_ && !leads()) {
    waiting_.clear();
    replicated_.hand_over();
  }
  if (leads() && !led_) {
    local_.count(chain_.order().epoch > told_ ? "shards_moved" : "shards_taken_over");
    led_since_ = chain_.order().epoch;
    told_ = 0;  // by whom, if anybody, is not known
    behind_ = true;
    replicated_.take_over();
  }
  led_ = leads();
  if (!led_) told_ = chain_.order().epoch;
  if (chain_.is_changing()) behind_ = true;
  if (!takes_inputs()) return;
  if (chain_.order().epoch > told_ && chain_.is_complete()) {
    told_ = chain_.order().epoch;
    tell(kAnyRank);
  }
  if (std::exchange(behind_, false)) catch_up();
}

// With what came while it could not be taken.
void Replication::catch_up() {
  for (Waiting& waiting : std::exchange(waiting_, {}))
    input(waiting.entry, std::move(waiting.decided));
  replicated_.catch_up();
}

void Replication::save(Chain::Item& item) {
  Archive state;
  Order order = chain_.order();
  state(order.epoch, order.members);
  item.values = replicated_.save(state);
  item.rest = state.take();
}

void Replication::restore(const Chain::Item& item) {
  Archive state(item.rest);
  Order order;
  state(order.epoch, order.members);
  replicated_.restore(state, item.values.span());
  told_ = order.epoch;
  chain_.begin_at(item.entry.index, std::move(order));
}

}  // namespace tutti::parameter_server
