// A worker's side of the conversation with one server: one request under way at a time, whose reply
// is checked before it is believed.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "core/bytes.h"
#include "strategies/parameter_server/messages.h"
#include "strategies/strategy.h"

namespace tutti::parameter_server {

class Link {
 public:
  // `incoming` is where this server's parameters arrive; all of them, `range` is its part.
  Link(Context& context, Rank server, Range range, std::span<float> incoming);

  Rank server() const { return server_; }
  // Where the parameters of the next pull arrive, if not where those of all pulls do.
  void expect(std::span<float> incoming) { incoming_ = incoming; }
  Range range() const { return range_; }

  // Sends `request` with everything filled in that belongs to this link. A pull's reply is awaited
  // from now on.
  void request(Request request);
  // A piece of the gradients of the last push; `data` must stay until the next finish_sending().
  void send_gradients(size_t piece, std::span<const std::byte> data);
  void send_keys(std::span<const uint64_t> keys);  // of the last request; likewise
  void finish_sending();                           // blocks until the buffers of all sends are free

  // Receives of the reply that are under way: the reply itself, then its parameters.
  bool awaits() const { return missing_ > 0; }
  std::vector<Handle>& handles() { return handles_; }
  // Receive `index` has ended. True when the reply is complete; false: wait for the rest.
  bool ended(size_t index, const Completion& completion);
  const Reply& reply() const { return reply_; }

  // Of the parameters that were read last: updates in them, and when that was.
  int64_t version() const { return version_; }
  double read_s() const { return read_s_; }
  void use() {  // they are what is computed on from now on
    version_ = reply_.version;
    read_s_ = arrived_s_;
  }
  int64_t pushes() const { return pushes_; }

 private:
  void check(const Reply& reply, size_t bytes);

  Context& context_;
  Node& node_;
  Rank server_;
  Range range_;
  std::span<float> incoming_;
  Request request_;
  Reply reply_;
  uint64_t sequence_ = 0, push_sequence_ = 0, pull_sequence_ = 0;
  int64_t pushes_ = 0;
  int64_t pushed_before_ = 0;  // when the pull was sent
  int64_t version_ = 0;
  double read_s_ = 0, arrived_s_ = 0;
  size_t missing_ = 0;  // receives of the reply that have not ended
  bool snapshot_ = false;
  std::vector<Handle> handles_;  // the reply, the parameters
  std::vector<Handle> sending_;
  std::deque<Request> sent_;  // must stay in place until they are sent
};

}  // namespace tutti::parameter_server
