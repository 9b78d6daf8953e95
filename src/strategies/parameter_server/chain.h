// One server's place in the chain of a shard (van Renesse and Schneider, "Chain replication for
// supporting high throughput and availability", OSDI 2004).
//
// The head numbers its entries and sends them to its successor, which executes each and sends it
// on; the last one acknowledges, and the acknowledgement goes back up. So whoever comes later has
// a prefix of what is known before it, and what is acknowledged is known to all that are left. An
// entry is kept until then, and sent again when the successor is lost, to the next one, which
// leaves out what it had already.
//
// The chain is changed by entries of its own, so all members agree on it. A new member comes last:
// who is before it sends its state instead of the entry that adds it, and nothing is acknowledged
// before it has that. Any other order holds from the entry on that says so: nothing follows it
// before it is acknowledged, when all members are in the same state, whoever comes first then.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/bytes.h"
#include "strategies/parameter_server/entry.h"
#include "strategies/parameter_server/inbox.h"
#include "strategies/parameter_server/ring.h"

namespace tutti::parameter_server {

class Chain {
 public:
  struct Item {
    Entry entry;
    std::vector<Decided> decided;
    Buffer<float> values;         // a gradient, or the parameters of a state
    std::vector<std::byte> rest;  // of a state
    size_t missing = 0;           // messages of these that have not arrived
    Rank from = kAnyRank;
    std::vector<std::byte> message;
    std::vector<Handle> sending;
  };
  // Fills in the state that the last entry has led to.
  using Save = std::function<void(Item&)>;

  // With an empty order: of a server that is to become a member.
  Chain(Node& node, const Ring& ring, int shard, Order order, Inbox& inbox, Save save);

  bool has_part() const { return place(self_) >= 0; }
  bool leads() const { return has_part() && predecessor_ == kAnyRank; }
  bool has_successor() const { return successor_ != kAnyRank; }
  uint64_t last() const { return last_; }                  // entry that was executed here
  uint64_t acknowledged() const { return acknowledged_; }  // entry that all have that are left
  const Order& order() const { return order_; }
  bool is_changing() const { return next_.has_value(); }           // no entry may follow just now
  bool is_complete() const { return added_at_ <= acknowledged_; }  // all members have the state

  // The head: the number of a new entry.
  uint64_t number_next() { return ++last_; }
  // It was executed here: on to the successor, or acknowledged if there is none.
  void pass_on(std::unique_ptr<Item> item);

  // An entry or an acknowledgement of `from` has arrived; it makes sense (fault_of).
  void receive(Rank from, const Entry& entry, std::vector<Decided> decided);
  void update_arrived(const Arrival& arrival, const Completion& completion);
  // The next one to execute, if it is here as a whole.
  std::unique_ptr<Item> next();
  // A state was taken over: this is a member now.
  void begin_at(uint64_t index, Order order);

  // A server was lost.
  void look_at_members() { find_neighbours(); }
  // Somebody goes by this epoch already.
  void hear_of(uint32_t epoch);
  void finish_sending();  // blocks until those who are left have what was sent

 private:
  struct Next {
    uint64_t index;  // of the entry that says so
    Order order;
  };
  int place(Rank rank) const;  // in the order; -1: none
  bool find_neighbours();      // true: a new successor has got all that it needs
  void transmit(Item& item);
  void send_state();
  void acknowledge(uint64_t index);
  void send_acknowledgement(Rank to, uint32_t epoch);
  bool may_follow(Rank from) const;
  void expect_rest(Item& item);

  Node& node_;
  const Ring& ring_;
  int shard_;
  Rank self_;
  Order order_;
  std::optional<Next> next_;
  Inbox& inbox_;
  Save save_;
  Rank predecessor_ = kAnyRank, successor_ = kAnyRank;
  uint64_t last_ = 0, acknowledged_ = 0;
  uint64_t added_at_ = 0;                       // the entry that the last member came by
  std::deque<std::unique_ptr<Item>> kept_;      // not acknowledged
  std::deque<std::unique_ptr<Item>> states_;    // that were sent
  std::deque<std::unique_ptr<Item>> incoming_;  // not executed
  std::deque<std::unique_ptr<Item>> answers_;   // acknowledgements under way
};

}  // namespace tutti::parameter_server
