// Sends what a shard answers: replies, and with them parameters, whole or piece by piece.
//
// Nothing leaves before the whole chain has the input that it is the answer to. Parameters that
// others change meanwhile are copied when the reply is decided on; workers of this host find them
// in a window.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "core/bytes.h"
#include "strategies/parameter_server/inbox.h"
#include "strategies/parameter_server/ring.h"
#include "strategies/parameter_server/shard.h"
#include "strategies/parameter_server/turn.h"

namespace tutti::parameter_server {

class Replier {
 public:
  // `in_place`: parameters stay as they are until everybody has them, so nothing is copied.
  Replier(Context& context, const Ring& ring, int shard, Inbox& inbox, Shard& parameters,
          bool in_place);

  // Whether the pull of this worker came to this server itself. The answer to one that came to the
  // head before does not leave here: it will be asked for again.
  void hear(int worker, bool heard) { to(worker).heard = heard; }
  // Sparse: what the pull of this worker asks for.
  void take_keys(int worker, std::span<const uint64_t> keys);
  // The reply leaves when the chain has entry `index`.
  void send(const output::Send& send, uint64_t index);
  void release(uint64_t acknowledged);
  void piece_sent(const Arrival& arrival, const Completion& completion, bool present);
  void forget(int worker) { to(worker) = To{}; }
  void hand_over();       // another one leads
  void finish_sending();  // blocks until those who are left have what was sent

 private:
  struct To {
    bool heard = false;
    bool by_layers = false;  // in pieces, one after the other
    Reply reply;             // the last one
    std::span<const float> parameters;
    size_t pieces_sent = 0;
    Buffer<float> staging;  // parameters that travel while others change them
    std::vector<uint64_t> keys;
    std::vector<Handle> sending;
  };
  struct Waiting {
    uint64_t index;  // the entry that brought it about
    int worker;
    uint64_t sequence;
  };
  To& to(int worker) { return workers_[static_cast<size_t>(worker)]; }
  std::span<const float> read_rows(To& to, const output::Send& send);
  std::span<const float> stage(To& to, std::span<const float> parameters);
  int64_t share(int worker, std::span<const float> parameters);
  void copy(std::span<const float> from, std::span<float> to);
  void transmit(const Waiting& waiting);
  void send_next_piece(int worker);

  Context& context_;
  Node& node_;
  const Ring& ring_;
  int index_;  // of the shard
  Inbox& inbox_;
  Shard& shard_;
  const bool in_place_;
  std::vector<Range> pieces_;
  std::vector<To> workers_;
  std::deque<Waiting> waiting_;
};

}  // namespace tutti::parameter_server
