// A worker's side of the conversation about one shard: one request under way at a time, whose reply
// is checked before it is believed.
//
// With replicas, what was asked and pushed since the last reply is kept. When the server is lost,
// or says that another one has the shard now, that one gets it again, with the same sequence
// numbers: it knows which of these the one before had taken and the chain has.
#pragma once

#include <algorithm>
#include <deque>
#include <span>
#include <vector>

#include "core/bytes.h"
#include "strategies/parameter_server/config.h"
#include "strategies/parameter_server/messages.h"
#include "strategies/parameter_server/ring.h"
#include "strategies/parameter_server/whereabouts.h"
#include "strategies/strategy.h"

namespace tutti::parameter_server {

class Link {
 public:
  // `incoming` is where parameters arrive; all of them, `range` is this shard.
  Link(Context& context, const Config& config, const Ring& ring, int shard, Range range,
       std::span<float> incoming);

  Rank server() const { return where_.server(); }
  // Where the parameters of the next pull arrive, if not where those of all pulls do.
  void expect(std::span<float> incoming) { incoming_ = incoming; }
  Range range() const { return range_; }

  // Sends `request` with everything filled in that belongs to this link. A pull's reply is awaited
  // from now on.
  void request(Request request);
  // True when the server was seen to share memory with this worker. Its gradients are then left
  // for it before the push is requested with kOutbox: `range` of all of them.
  bool shares() const { return shares_; }
  void leave_gradients(Range range, std::span<const float> gradients);
  // What was left last is about to be overwritten: blocks until the server does not need it there.
  void secure_gradients();
  // A piece of the gradients of the last push; `data` must stay until the next finish_sending().
  void send_gradients(size_t piece, std::span<const std::byte> data);
  void send_keys(std::span<const uint64_t> keys);  // of the last request; likewise
  void finish_sending();                           // blocks until the buffers of all sends are free
  bool has_heirs() const { return ring_.replicas() > 0; }
  // `lost` was the server, unless this was noticed before: goes on with the next one. Throws when
  // every copy is lost.
  void turn_to_heir(Rank lost);
  // A receive of what servers say about this shard's chain, under way with replicas, and what to
  // do when it has ended. True: this link has turned to another server.
  Handle& notice() { return where_.notice(); }
  bool noticed(const Completion& completion);

  // Receives of the reply that are under way: the reply itself, then its parameters, in one piece
  // or in those that a forward pass needs one after the other.
  bool awaits() const { return missing_ > 0; }
  bool awaits_header() const { return missing_ > 0 && handles_.front().pending(); }
  std::vector<Handle>& handles() { return handles_; }
  // Receive `index` has ended. True when the reply is complete; false: wait for the rest.
  bool ended(size_t index, const Completion& completion);
  const Reply& reply() const { return reply_; }
  // Copies the parameters that came with a reply last to their place among `parameters`.
  void read(std::span<float> parameters) const;
  void read(std::span<float> parameters, Range range) const;  // of all; within this shard
  // Of all parameters, the pieces that arrive by handles 1, 2, ...
  const std::vector<Range>& pieces() const { return pieces_; }

  // Of the parameters that were read last: updates in them, and when that was.
  int64_t version() const { return version_; }
  double read_s() const { return read_s_; }
  // They are what is computed on from now on, as a part of the step after `most` updates at most.
  void use(int64_t most) {
    version_ = std::min(reply_.version, most);
    read_s_ = arrived_s_;
  }
  int64_t pushes() const { return pushes_; }

 private:
  struct Sent {
    struct Part {
      Tag tag;
      std::span<const std::byte> data;
    };
    Request request;
    std::vector<Part> parts;  // gradients and keys
    Buffer<std::byte> copy;   // of these, when their own memory is needed again
  };
  void transmit(Sent& sent);
  void expect_reply();
  bool sends_are_done();
  bool sends_to_heirs_are_done();
  void keep_up();
  void turn();
  void send_part(Tag tag, std::span<const std::byte> data);
  void copy_parts(Sent& sent);
  void check(const Reply& reply, size_t bytes);
  void find_in_window();

  Context& context_;
  const Config& config_;
  Node& node_;
  const Ring& ring_;
  int shard_;
  Whereabouts where_;
  Range range_;
  size_t parameters_;  // of all servers
  std::vector<Range> pieces_, forward_pieces_;
  std::span<float> incoming_;
  std::span<const float> arrived_;  // there, or in the server's window
  Request request_;
  Reply reply_;
  uint64_t sequence_ = 0, push_sequence_ = 0, pull_sequence_ = 0;
  uint64_t acknowledged_ = 0;  // the last one whose reply is here: the chain has all up to it
  int64_t pushes_ = 0;
  int64_t pushed_before_ = 0;  // when the pull was sent
  int64_t version_ = 0;
  double read_s_ = 0, arrived_s_ = 0;
  size_t missing_ = 0;  // receives of the reply that have not ended
  bool snapshot_ = false;
  bool shares_ = false;
  std::vector<Handle> handles_;  // the reply, the parameters
  std::vector<Handle> sending_;
  std::deque<Sent> sent_;  // must stay in place until they are sent, and acknowledged
};

}  // namespace tutti::parameter_server
