#include "strategies/parameter_server/chain.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tutti::parameter_server {

Chain::Chain(Node& node, const Ring& ring, int shard, Order order, Inbox& inbox, Save save)
    : node_(node),
      ring_(ring),
      shard_(shard),
      self_(node.endpoint().rank()),
      order_(std::move(order)),
      inbox_(inbox),
      save_(std::move(save)) {
  find_neighbours();
}

int Chain::place(Rank rank) const {
  for (size_t i = 0; i < order_.members.size(); ++i)
    if (order_.members[i].rank == rank) return static_cast<int>(i);
  return -1;
}

bool Chain::find_neighbours() {
  const Rank before = successor_, above = predecessor_;
  const std::vector<Member> left = ring_.left_of(order_.members);
  const auto self = std::find_if(left.begin(), left.end(),
                                 [&](const Member& member) { return member.rank == self_; });
  predecessor_ = successor_ = kAnyRank;
  if (self == left.end()) return false;
  if (self != left.begin()) predecessor_ = (self - 1)->rank;
  if (self + 1 != left.end()) successor_ = (self + 1)->rank;
  if (leads()) {
    inbox_.forget([&](const Arrival& arrival) {
      return arrival.kind == Arrival::kUpdate && arrival.shard == shard_;
    });
    incoming_.clear();
  }
  // What the lost one may not have passed on.
  if (!leads() && predecessor_ != above && acknowledged_ > 0)
    send_acknowledgement(predecessor_, order_.epoch);
  if (successor_ == before) return false;
  if (!has_successor())
    acknowledge(last_);
  else if (!is_complete() && successor_ == order_.members.back().rank)
    send_state();
  else
    for (const std::unique_ptr<Item>& item : kept_) transmit(*item);
  return true;
}

void Chain::pass_on(std::unique_ptr<Item> item) {
  last_ = item->entry.index;
  item->message.resize(sizeof(Entry) + item->decided.size() * sizeof(Decided));
  if (!item->entry.has_order()) item->entry.epoch = order_.epoch;
  std::memcpy(item->message.data(), &item->entry, sizeof(Entry));
  if (!item->decided.empty())
    std::memcpy(item->message.data() + sizeof(Entry), item->decided.data(),
                item->decided.size() * sizeof(Decided));
  Item& passed = *item;
  kept_.push_back(std::move(item));
  bool sent = false;
  if (passed.entry.kind == Entry::kOrder) next_ = {last_, passed.entry.order()};
  if (passed.entry.kind == Entry::kAdded) {
    order_ = passed.entry.order();
    added_at_ = last_;
    sent = find_neighbours();
  }
  if (!has_successor())
    acknowledge(last_);
  else if (!sent)
    transmit(passed);
}

void Chain::transmit(Item& item) {
  item.sending.clear();
  item.sending.push_back(node_.endpoint().send(successor_, entry_tag(), item.message));
  const uint64_t stream = ring_.stream(shard_, item.entry.index);
  if (item.entry.elements > 0)
    item.sending.push_back(node_.endpoint().send(
        successor_, update_tag(stream), bytes_of(std::span<const float>(item.values.span()))));
  if (item.entry.bytes > 0)
    item.sending.push_back(node_.endpoint().send(successor_, rest_tag(stream), item.rest));
}

void Chain::send_state() {
  states_.clear();
  Item& item = *states_.emplace_back(std::make_unique<Item>());
  item.entry.kind = Entry::kState;
  item.entry.shard = shard_;
  item.entry.index = last_;
  item.entry.epoch = order_.epoch;
  save_(item);
  item.entry.elements = item.values.size();
  item.entry.bytes = item.rest.size();
  item.message.resize(sizeof(Entry));
  std::memcpy(item.message.data(), &item.entry, sizeof(Entry));
  transmit(item);
}

void Chain::acknowledge(uint64_t index) {
  acknowledged_ = std::max(acknowledged_, index);
  while (!kept_.empty() && kept_.front()->entry.index <= acknowledged_) kept_.pop_front();
  if (is_complete()) states_.clear();
  const bool changes = next_ && next_->index <= acknowledged_;
  if (predecessor_ != kAnyRank)
    send_acknowledgement(predecessor_, changes ? next_->order.epoch : order_.epoch);
  if (!changes) return;
  order_ = std::move(next_->order);
  next_.reset();
  find_neighbours();
}

void Chain::send_acknowledgement(Rank to, uint32_t epoch) {
  constexpr size_t kUnderWay = 64;  // small messages: those before are gone
  if (answers_.size() >= kUnderWay) answers_.pop_front();
  Item& answer = *answers_.emplace_back(std::make_unique<Item>());
  answer.entry.kind = Entry::kAcknowledged;
  answer.entry.shard = shard_;
  answer.entry.epoch = epoch;
  answer.entry.index = acknowledged_;
  answer.sending.push_back(node_.endpoint().send(
      to, entry_tag(), std::as_bytes(std::span<const Entry>(&answer.entry, 1))));
}

void Chain::hear_of(uint32_t epoch) {
  if (next_ && epoch >= next_->order.epoch) acknowledge(next_->index);
}

void Chain::receive(Rank from, const Entry& entry, std::vector<Decided> decided) {
  hear_of(entry.has_order() ? entry.epoch - 1 : entry.epoch);
  const bool after = place(from) > place(self_);
  if (entry.kind == Entry::kAcknowledged) {
    if (after && entry.index <= last_) acknowledge(entry.index);
    return;
  }
  // Who says again what all have does not know it.
  if (has_part() && entry.index <= acknowledged_) return send_acknowledgement(from, order_.epoch);
  // What the head before sent and nobody acknowledged does not count: its workers ask again.
  if (leads() || (entry.kind != Entry::kState && !may_follow(from))) return;
  auto item = std::make_unique<Item>();
  item->entry = entry;
  item->decided = std::move(decided);
  item->from = from;
  expect_rest(*item);
  incoming_.push_back(std::move(item));
}

// Who comes before this one, or has sent the state that this one begins with.
bool Chain::may_follow(Rank from) const {
  if (has_part()) return place(from) >= 0 && place(from) < place(self_);
  return std::any_of(incoming_.begin(), incoming_.end(), [&](const auto& item) {
    return item->entry.kind == Entry::kState && item->from == from;
  });
}

void Chain::expect_rest(Item& item) {
  const uint64_t stream = ring_.stream(shard_, item.entry.index);
  const auto expect = [&](Tag tag, std::span<std::byte> bytes) {
    if (bytes.empty()) return;
    ++item.missing;
    inbox_.expect(item.from, tag, bytes,
                  {.kind = Arrival::kUpdate,
                   .shard = shard_,
                   .peer = item.from,
                   .index = item.entry.index,
                   .bytes = bytes.size()});
  };
  item.values = Buffer<float>(item.entry.elements);
  item.rest.resize(item.entry.bytes);
  expect(update_tag(stream), writable_bytes_of(item.values.span()));
  expect(rest_tag(stream), item.rest);
}

void Chain::update_arrived(const Arrival& arrival, const Completion& completion) {
  const auto found = std::find_if(incoming_.begin(), incoming_.end(), [&](const auto& item) {
    return item->missing > 0 && item->entry.index == arrival.index && item->from == arrival.peer;
  });
  if (found == incoming_.end()) return;
  if (completion.state == State::kDone && completion.bytes == arrival.bytes) {
    --(*found)->missing;
    return;
  }
  // Its sender is lost; the one before it sends it again.
  inbox_.forget([&](const Arrival& other) {
    return other.kind == Arrival::kUpdate && other.shard == shard_ &&
           other.index == arrival.index && other.peer == arrival.peer;
  });
  incoming_.erase(found);
}

std::unique_ptr<Chain::Item> Chain::next() {
  if (leads()) return nullptr;
  while (!incoming_.empty() && incoming_.front()->missing == 0) {
    std::unique_ptr<Item> item = std::move(incoming_.front());
    incoming_.pop_front();
    const bool state = item->entry.kind == Entry::kState;
    // Others came twice, of two members.
    if (state ? item->entry.index > last_ : item->entry.index == last_ + 1) return item;
  }
  return nullptr;
}

void Chain::begin_at(uint64_t index, Order order) {
  last_ = index;
  added_at_ = 0;
  order_ = std::move(order);
  find_neighbours();
  acknowledge(last_);
}

void Chain::finish_sending() {
  for (auto* items : {&kept_, &states_, &answers_})
    for (const std::unique_ptr<Item>& item : *items)
      for (Handle& handle : item->sending)
        if (handle.pending()) node_.endpoint().wait(handle, node_.timeout_s());
}

}  // namespace tutti::parameter_server
