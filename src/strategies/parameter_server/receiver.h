// What reaches the head of a shard's chain: requests of workers, their gradients, their coming and
// going. Each becomes an input of the shard's state machine, once.
//
// Requests of a worker are taken in the order sent, one after the other; what comes after a push
// waits until its gradients are here. To a server that took over, a worker says again what the head
// before had not answered: what the chain has of that is answered from the state, and not executed
// a second time.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "strategies/parameter_server/held_gradients.h"
#include "strategies/parameter_server/inbox.h"
#include "strategies/parameter_server/replication.h"
#include "strategies/parameter_server/replier.h"
#include "strategies/parameter_server/shard_state.h"

namespace tutti::parameter_server {

class Receiver {
 public:
  struct Parts {  // of the same server
    const ShardState& state;
    Shard& shard;
    HeldGradients& held;
    Replier& replier;
    Replication& replication;
  };
  Receiver(Context& context, Recorder& local, const Ring& ring, Inbox& inbox, const Parts& parts);

  // A request may come before this server knows that it is to answer: it has to wait.
  void handle(Rank from, const Request& request, size_t bytes, std::vector<Decided> decided);
  void gradient_arrived(const Arrival& arrival, const Completion& completion);
  void refuse(int worker, const std::string& why);  // it sent nonsense
  void look_at_workers();                           // some have come or gone

  // The slot with what came with this request, which is executed now; nothing: nothing came.
  std::optional<size_t> take_slot(int worker, uint64_t sequence);
  uint64_t last_sequence(int worker) const {
    return workers_[static_cast<size_t>(worker)].sequence;
  }
  void abandon(int worker);  // cancels what it has begun to send
  void forget(int worker) { from(worker) = From{}; }
  void take_over();
  void hand_over();
  void catch_up();
  bool has_heard_everybody() const;  // that is there, since it took over

 private:
  struct Push {
    Request request;
    size_t slot = 0;
    size_t pieces_left = 0;
  };
  struct From {
    bool unheard = false;   // nothing has come since this server took over
    uint64_t sequence = 0;  // of its last request that arrived
    std::deque<Request> queue;
    std::optional<Push> push;  // on its way
    Handle secured;            // the answer to kSecure
  };
  struct Deferred {
    Rank from;
    Request request;
    size_t bytes;
    std::vector<Decided> decided;
  };
  bool is_worker(Rank rank) const { return rank >= 0 && rank < state_.workers().size(); }
  From& from(int worker) { return workers_[static_cast<size_t>(worker)]; }
  void defer(Rank from, const Request& request, size_t bytes, std::vector<Decided> decided);
  bool follows(int worker, uint64_t sequence);
  void process_queue(int worker);
  void begin_push(int worker, const Request& request);
  void receive_pieces(int worker, const Request& request);
  void receive_rows(int worker, const Request& request);
  void take_outbox(int worker, const Request& request);
  void expect(int worker, Tag tag, std::span<std::byte> buffer);
  bool rows_make_sense(int worker);
  void finish_push(int worker);
  void tell_secured(int worker, const Request& request);
  void answer_again(int worker, const Request& request);
  void forget_undelivered();

  Context& context_;
  Recorder& local_;
  Node& node_;
  const Ring& ring_;
  Inbox& inbox_;
  const ShardState& state_;
  Shard& shard_;
  HeldGradients& held_;
  Replier& replier_;
  Replication& replication_;
  const int index_;            // of the shard
  std::vector<Range> pieces_;  // of gradients
  std::vector<From> workers_;
  std::vector<Deferred> deferred_;
};

}  // namespace tutti::parameter_server
