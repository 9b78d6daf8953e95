// One server's place in the chain of a shard (van Renesse and Schneider, "Chain replication for
// supporting high throughput and availability", OSDI 2004).
//
// The head numbers its entries and sends them to its successor, which executes each and sends it
// on; the last one acknowledges, and the acknowledgement goes back up. So whoever comes later has
// a prefix of what is known before it, and what is acknowledged is known to all that are left. An
// entry is kept until then, and sent again when the successor is lost, to the next one, which
// leaves out what it had already.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "core/bytes.h"
#include "core/range.h"
#include "strategies/parameter_server/entry.h"
#include "strategies/parameter_server/inbox.h"
#include "strategies/parameter_server/ring.h"

namespace tutti::parameter_server {

class Chain {
 public:
  struct Item {
    Entry entry;
    std::vector<Decided> decided;
    Buffer<float> gradient;
    bool here = true;  // its gradient has arrived
    Rank from = kAnyRank;
    std::vector<std::byte> message;
    std::vector<Handle> sending;
  };

  Chain(Node& node, const Ring& ring, int shard, Range range, Inbox& inbox);

  bool leads() const { return predecessor_ == kAnyRank; }
  bool has_successor() const { return successor_ != kAnyRank; }
  uint64_t last() const { return last_; }                  // entry that was executed here
  uint64_t acknowledged() const { return acknowledged_; }  // entry that all have that are left

  // The head: the number of a new entry.
  uint64_t number_next() { return ++last_; }
  // It was executed here: on to the successor, or acknowledged if there is none.
  void pass_on(std::unique_ptr<Item> item);

  // An entry or an acknowledgement of `from` has arrived; it makes sense (fault_of).
  void receive(Rank from, const Entry& entry, std::vector<Decided> decided);
  void update_arrived(const Arrival& arrival, const Completion& completion);
  // The next one to execute, if it is here as a whole.
  std::unique_ptr<Item> next();

  // A server was lost.
  void look_at_members();
  void finish_sending();  // blocks until those who are left have what was sent

 private:
  void find_neighbours();
  void transmit(Item& item);
  void acknowledge(uint64_t index);

  Node& node_;
  const Ring& ring_;
  int shard_;
  Range range_;
  Inbox& inbox_;
  Rank predecessor_ = kAnyRank, successor_ = kAnyRank;
  uint64_t last_ = 0, acknowledged_ = 0;
  std::deque<std::unique_ptr<Item>> kept_;      // not acknowledged
  std::deque<std::unique_ptr<Item>> incoming_;  // not executed
  std::deque<std::unique_ptr<Item>> answers_;   // acknowledgements under way
};

}  // namespace tutti::parameter_server
