#include "strategies/parameter_server/chain.h"

#include <algorithm>
#include <cstring>

namespace tutti::parameter_server {

Chain::Chain(Node& node, const Ring& ring, int shard, Range range, Inbox& inbox)
    : node_(node), ring_(ring), shard_(shard), range_(range), inbox_(inbox) {
  find_neighbours();
}

void Chain::find_neighbours() {
  const std::vector<Rank> members = ring_.chain(shard_);
  const auto self = std::find(members.begin(), members.end(), node_.endpoint().rank());
  predecessor_ = successor_ = kAnyRank;
  if (self == members.end()) return;
  if (self != members.begin()) predecessor_ = *(self - 1);
  if (self + 1 != members.end()) successor_ = *(self + 1);
}

void Chain::pass_on(std::unique_ptr<Item> item) {
  last_ = item->entry.index;
  if (!has_successor()) return acknowledge(last_);
  item->message.resize(sizeof(Entry) + item->decided.size() * sizeof(Decided));
  std::memcpy(item->message.data(), &item->entry, sizeof(Entry));
  if (!item->decided.empty())
    std::memcpy(item->message.data() + sizeof(Entry), item->decided.data(),
                item->decided.size() * sizeof(Decided));
  transmit(*item);
  kept_.push_back(std::move(item));
}

void Chain::transmit(Item& item) {
  item.sending.clear();
  item.sending.push_back(node_.endpoint().send(successor_, entry_tag(), item.message));
  if (item.entry.elements > 0)
    item.sending.push_back(
        node_.endpoint().send(successor_, update_tag(ring_.stream(shard_, item.entry.index)),
                              bytes_of(std::span<const float>(item.gradient.span()))));
}

void Chain::acknowledge(uint64_t index) {
  acknowledged_ = std::max(acknowledged_, index);
  while (!kept_.empty() && kept_.front()->entry.index <= acknowledged_) kept_.pop_front();
  if (leads()) return;
  constexpr size_t kUnderWay = 64;  // small messages: those before are gone
  if (answers_.size() >= kUnderWay) answers_.pop_front();
  answers_.push_back(std::make_unique<Item>());
  Item& answer = *answers_.back();
  answer.entry.kind = Entry::kAcknowledged;
  answer.entry.shard = shard_;
  answer.entry.index = acknowledged_;
  answer.sending.push_back(node_.endpoint().send(
      predecessor_, entry_tag(), std::as_bytes(std::span<const Entry>(&answer.entry, 1))));
}

void Chain::receive(Rank from, const Entry& entry, std::vector<Decided> decided) {
  const int place = ring_.place(shard_, node_.endpoint().rank());
  const int place_of_sender = ring_.place(shard_, from);
  if (entry.kind == Entry::kAcknowledged) {
    if (place_of_sender > place && entry.index <= last_) acknowledge(entry.index);
    return;
  }
  // What the head before sent and nobody acknowledged does not count: its workers ask again.
  if (leads() || place_of_sender < 0 || place_of_sender >= place) return;
  auto item = std::make_unique<Item>();
  item->entry = entry;
  item->decided = std::move(decided);
  item->from = from;
  if (entry.elements > 0) {
    item->here = false;
    item->gradient = Buffer<float>(entry.elements);
    const std::span<std::byte> bytes = writable_bytes_of(item->gradient.span());
    inbox_.expect(from, update_tag(ring_.stream(shard_, entry.index)), bytes,
                  {.kind = Arrival::kUpdate,
                   .shard = shard_,
                   .peer = from,
                   .index = entry.index,
                   .bytes = bytes.size()});
  }
  incoming_.push_back(std::move(item));
}

void Chain::update_arrived(const Arrival& arrival, const Completion& completion) {
  const auto found = std::find_if(incoming_.begin(), incoming_.end(), [&](const auto& item) {
    return !item->here && item->entry.index == arrival.index && item->from == arrival.peer;
  });
  if (found == incoming_.end()) return;
  if (completion.state == State::kDone && completion.bytes == arrival.bytes)
    (*found)->here = true;
  else
    incoming_.erase(found);  // its sender is lost; the one before it sends it again
}

std::unique_ptr<Chain::Item> Chain::next() {
  if (leads()) return nullptr;
  while (!incoming_.empty() && incoming_.front()->here) {
    std::unique_ptr<Item> item = std::move(incoming_.front());
    incoming_.pop_front();
    if (item->entry.index == last_ + 1) return item;  // or it came twice, of two members
  }
  return nullptr;
}

void Chain::look_at_members() {
  const Rank before = successor_, above = predecessor_;
  find_neighbours();
  if (leads()) {
    inbox_.forget([&](const Arrival& arrival) {
      return arrival.kind == Arrival::kUpdate && arrival.shard == shard_;
    });
    incoming_.clear();
  }
  // What the lost one may not have passed on.
  if (!leads() && predecessor_ != above) acknowledge(acknowledged_);
  if (successor_ == before) return;
  if (!has_successor()) return acknowledge(last_);
  for (const std::unique_ptr<Item>& item : kept_) transmit(*item);
}

void Chain::finish_sending() {
  for (auto* items : {&kept_, &answers_})
    for (const std::unique_ptr<Item>& item : *items)
      for (Handle& handle : item->sending)
        if (handle.pending()) node_.endpoint().wait(handle, node_.timeout_s());
}

}  // namespace tutti::parameter_server
