// A server's part in the replication of a shard: its inputs are put in order by the head of a
// chain, and executed by all members (chain.h).
//
// A shard moves from server to server by entries of its chain. The head looks at who is alive and
// at what would be balanced then (ring.h), and takes one step at a time towards that: a server that
// lacks the shard becomes the chain's last, with all of the state; when it has that, the chain is
// put in the order that is wanted, in which the head may be another and surplus members are left
// out. So nothing that was acknowledged is lost and nothing is executed twice. Workers hear from
// the new head and say again what was not answered, as after a loss.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "core/archive.h"
#include "strategies/parameter_server/chain.h"
#include "strategies/recorder.h"

namespace tutti::parameter_server {

// What is replicated.
class Replicated {
 public:
  virtual ~Replicated() = default;
  // `replayed`: the head has executed it before.
  virtual void execute(Chain::Item& item, bool replayed) = 0;
  // All of the state: the numbers, and the rest in `archive`.
  virtual Buffer<float> save(Archive& archive) = 0;
  virtual void restore(Archive& archive, std::span<const float> values) = 0;
  // The whole chain has all entries up to this one: what they brought about may leave.
  virtual void release(uint64_t acknowledged) = 0;
  virtual void take_over() = 0;  // this server has become the head
  virtual void hand_over() = 0;  // another one has
  virtual void catch_up() = 0;   // the head can take inputs that had to wait
};

class Replication {
 public:
  // What the head of a chain tells everybody, or this worker.
  using Tell = std::function<void(const Notice&, Rank)>;
  // `local` counts what this node alone does. With an empty order it has no part in the chain
  // before it gets its state.
  Replication(Node& node, Recorder& local, const Ring& ring, int shard, Order order, Inbox& inbox,
              Replicated& replicated, Tell tell);

  const Chain& chain() const { return chain_; }
  bool leads() const { return chain_.leads(); }
  bool has_part() const { return chain_.has_part(); }
  bool is_joining() const { return chain_.order().members.empty(); }
  bool takes_inputs() const { return leads() && !chain_.is_changing(); }
  bool is_settled() const {
    return chain_.acknowledged() == chain_.last() && !chain_.is_changing();
  }
  // Who has not heard of a later epoch than this has to ask again.
  uint32_t led_since() const { return leads() ? led_since_ : chain_.order().epoch; }
  Notice notice() const;
  void tell(Rank worker) const { tell_(notice(), worker); }

  // The head: an input for all members, executed here before this returns, unless it has to wait.
  void input(Entry entry, std::vector<Decided> decided = {});
  // The others.
  void entry_arrived(Rank from, const Entry& entry, std::vector<Decided> decided);
  void update_arrived(const Arrival& arrival, const Completion& completion);

  void release() { replicated_.release(chain_.acknowledged()); }
  void look_at_servers();  // one was lost or came back
  void hear_of(const Notice& notice);
  // The head: takes the next step towards this chain, if it can be taken now. `keeps_head`: the
  // next head would have to get too much once more.
  void rebalance(const std::vector<Member>& target, bool keeps_head);
  void finish_sending() { chain_.finish_sending(); }

 private:
  struct Waiting {
    Entry entry;
    std::vector<Decided> decided;
  };
  void follow();
  void look_at_chain();
  void catch_up();
  void save(Chain::Item& item);
  void restore(const Chain::Item& item);

  Recorder& local_;
  const Ring& ring_;
  int index_;  // of the shard
  Replicated& replicated_;
  Tell tell_;
  Chain chain_;
  std::deque<Waiting> waiting_;  // for a change of the chain
  bool executing_ = false;
  bool led_ = false;        // when the chain was looked at last
  bool behind_ = false;     // it has led or could take inputs before it was looked at
  uint32_t led_since_ = 0;  // epoch
  uint32_t told_ = 0;       // epoch that everybody was told of
};

}  // namespace tutti::parameter_server
