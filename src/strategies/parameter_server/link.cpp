#include "strategies/parameter_server/link.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "fabric/exchange.h"
#include "strategies/parameter_server/shared_memory.h"

namespace tutti::parameter_server {

Link::Link(Context& context, const Config& config, const Ring& ring, int shard, Range range,
           std::span<float> incoming)
    : context_(context),
      config_(config),
      node_(context.node),
      ring_(ring),
      shard_(shard),
      server_(ring.head(shard)),
      range_(range),
      parameters_(incoming.size()),
      incoming_(incoming.subspan(range.begin, range.size())),
      arrived_(incoming_) {
  if (server_ == kAnyRank) turn_to_heir(kAnyRank);
}

void Link::request(Request request) {
  request.sequence = ++sequence_;
  request.shard = shard_;
  request.clock = pushes_;
  if (request.flags & Request::kPush) {
    request.version = version_;
    request.read_s = read_s_;
    request.offset = static_cast<int64_t>(outbox_offset(parameters_, config_, pushes_));
    ++pushes_;
    push_sequence_ = sequence_;
  }
  if (request.flags & Request::kPull) {
    TUTTI_CHECK(missing_ == 0);
    if (context_.window) request.flags |= Request::kReads;
    request_ = request;
    pushed_before_ = pushes_;
    pull_sequence_ = sequence_;
    snapshot_ = request.flags & Request::kSnapshot;
    expect_reply();
  }
  sent_.push_back({request, {}, {}});
  transmit(sent_.back());
}

void Link::expect_reply() {
  const uint64_t stream = ring_.stream(shard_, pull_sequence_);
  handles_.clear();
  handles_.push_back(node_.endpoint().receive(
      server_, reply_tag(stream), std::as_writable_bytes(std::span<Reply>(&reply_, 1))));
  if (!(request_.flags & Request::kHeaderOnly) && !incoming_.empty() && !shares_)
    handles_.push_back(
        node_.endpoint().receive(server_, parameters_tag(stream), writable_bytes_of(incoming_)));
  missing_ = handles_.size();
}

void Link::transmit(const Sent& sent) {
  sending_.push_back(node_.endpoint().send(
      server_, request_tag(), std::as_bytes(std::span<const Request>(&sent.request, 1))));
  const uint64_t stream = ring_.stream(shard_, sent.request.sequence);
  for (const Sent::Piece& piece : sent.gradients)
    sending_.push_back(
        node_.endpoint().send(server_, gradient_tag(stream, piece.number), piece.data));
}

void Link::send_gradients(size_t piece, std::span<const std::byte> data) {
  const uint64_t stream = ring_.stream(shard_, push_sequence_);
  sending_.push_back(node_.endpoint().send(server_, gradient_tag(stream, piece), data));
  if (has_heirs()) sent_.back().gradients.push_back({piece, data});
}

void Link::send_keys(std::span<const uint64_t> keys) {
  if (!keys.empty())
    sending_.push_back(
        node_.endpoint().send(server_, keys_tag(ring_.stream(shard_, sequence_)), bytes_of(keys)));
}

void Link::finish_sending() {
  while (!sends_are_done()) turn_to_heir(server_);
  sending_.clear();
  if (!has_heirs()) return sent_.clear();
  while (!sent_.empty() && sent_.front().request.sequence <= acknowledged_) sent_.pop_front();
  for (Sent& sent : sent_) copy_gradients(sent);
}

// False: the server is lost, and there may be another one.
bool Link::sends_are_done() {
  for (Handle& handle : sending_) {
    if (!handle.pending()) continue;
    const Completion completion = node_.endpoint().wait(handle, node_.timeout_s());
    if (completion.state == State::kPeerLost && has_heirs()) return false;
    require_done(node_, completion);
  }
  return true;
}

void Link::copy_gradients(Sent& sent) {
  if (sent.gradients.empty() || sent.copy.size() > 0) return;
  size_t bytes = 0;
  for (const Sent::Piece& piece : sent.gradients) bytes += piece.data.size();
  sent.copy = Buffer<std::byte>(bytes);
  std::span<std::byte> left = sent.copy.span();
  for (Sent::Piece& piece : sent.gradients) {
    const std::span<std::byte> mine = left.first(piece.data.size());
    if (!node_.clock().cost_only()) std::copy(piece.data.begin(), piece.data.end(), mine.begin());
    piece.data = mine;
    left = left.subspan(mine.size());
  }
  node_.clock().charge({.flops = 0, .memory_bytes = 2.0 * static_cast<double>(bytes)});
}

void Link::turn_to_heir(Rank lost) {
  if (lost != server_) return;
  const int place = server_ == kAnyRank ? -1 : ring_.place(shard_, server_);
  Rank heir = kAnyRank;
  for (const Rank rank : ring_.chain(shard_))
    if (heir == kAnyRank && ring_.place(shard_, rank) > place) heir = rank;
  if (heir == kAnyRank)
    throw FabricError(FabricError::Kind::kPeerLost, ring_.first_server() + shard_,
                      fmt::format("every server is lost that had a copy of the parameters of rank "
                                  "{}; raise strategy.replicas to survive more losses",
                                  ring_.first_server() + shard_));
  context_.recorder.count("heirs_asked");
  server_ = heir;
  sending_.clear();
  if (awaits()) expect_reply();
  for (const Sent& sent : sent_)
    if (sent.request.sequence > acknowledged_) transmit(sent);
}

bool Link::ended(size_t index, const Completion& completion) {
  const size_t bytes = require_done(node_, completion);
  --missing_;
  if (index == 0) {
    check(reply_, bytes);
    if (reply_.offset >= 0) find_in_window();
    if (reply_.elements == 0 || reply_.offset >= 0) missing_ = 0;  // no parameters will follow
  } else if (bytes != incoming_.size() * sizeof(float)) {
    throw FabricError(FabricError::Kind::kProtocol, server_,
                      fmt::format("rank {} sent {} bytes of parameters instead of {}", server_,
                                  bytes, incoming_.size() * sizeof(float)));
  }
  if (missing_ > 0) return false;
  arrived_s_ = node_.clock().now();
  if (reply_.kind != Reply::kRepeat) {
    acknowledged_ = pull_sequence_;
  } else if (has_heirs()) {  // the step is still open, but this answer need not come twice
    for (Sent& sent : sent_)
      if (sent.request.sequence == pull_sequence_) sent.request.flags &= ~uint32_t{Request::kPull};
  }
  return true;
}

void Link::find_in_window() {
  if (context_.window)
    arrived_ = floats_in(*context_.window, server_, reply_.offset, range_.size());
  if (!context_.window || arrived_.empty())
    throw FabricError(
        FabricError::Kind::kProtocol, server_,
        fmt::format("rank {} says that its parameters lie outside of its window", server_));
  shares_ = true;
}

void Link::leave_gradients(Range range, std::span<const float> gradients) {
  PhaseScope scope(context_.watch, Phase::kCommunicate);
  const auto offset = static_cast<int64_t>(outbox_offset(parameters_, config_, pushes_));
  const std::span<float> outbox =
      floats_in(*context_.window, node_.endpoint().rank(), offset, parameters_);
  if (!node_.clock().cost_only())
    std::copy_n(gradients.begin() + static_cast<std::ptrdiff_t>(range.begin), range.size(),
                outbox.begin() + static_cast<std::ptrdiff_t>(range.begin));
  node_.clock().charge({.flops = 0, .memory_bytes = 8.0 * static_cast<double>(range.size())});
}

void Link::read(std::span<float> parameters) const {
  std::copy(arrived_.begin(), arrived_.end(),
            parameters.begin() + static_cast<std::ptrdiff_t>(range_.begin));
}

void Link::check(const Reply& reply, size_t bytes) {
  const std::string fault = fault_of(reply, bytes, pull_sequence_, incoming_.size());
  if (!fault.empty())
    throw FabricError(FabricError::Kind::kProtocol, server_,
                      fmt::format("the reply of rank {} cannot be meant: {}", server_, fault));
  if (reply.kind == Reply::kRefused)
    throw FabricError(
        FabricError::Kind::kProtocol, server_,
        fmt::format("rank {} refused to go on with this worker; its log says why", server_));
  if (reply.kind == Reply::kDiverged)
    throw DivergedError("the loss of a worker is not a finite number any more");
  // A worker sees its own pushes: those that it had sent before it asked.
  if (reply.accounted < pushed_before_)
    throw Error(fmt::format("rank {} answered with {} of this worker's {} pushes", server_,
                            reply.accounted, pushed_before_));
  if (reply.kind == Reply::kRepeat || reply.elements == 0 || snapshot_) return;
  if (request_.flags & Request::kFinal) return;
  // Nobody reads parameters older than its clock minus the bound, or than the step it is to take.
  const int64_t clock = pushed_before_ + (request_.flags & Request::kAhead ? 1 : 0);
  if (reply.oldest >= clock - reply.bound && reply.version >= request_.wanted) return;
  context_.recorder.count("stale_reads");
  throw Error(
      fmt::format("rank {} gave parameters of clock {} and version {} to a worker at clock "
                  "{} that wanted version {}; the bound is {}",
                  server_, reply.oldest, reply.version, clock, request_.wanted, reply.bound));
}

}  // namespace tutti::parameter_server
