#include "strategies/parameter_server/link.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "fabric/exchange.h"
#include "strategies/parameter_server/layout.h"
#include "strategies/parameter_server/shared_memory.h"

namespace tutti::parameter_server {

Link::Link(Context& context, const Config& config, const Ring& ring, int shard, Range range,
           std::span<float> incoming)
    : context_(context),
      config_(config),
      node_(context.node),
      ring_(ring),
      shard_(shard),
      where_(context.node, ring, shard),
      range_(range),
      parameters_(incoming.size()),
      forward_pieces_(forward_pieces_of(context.model.architecture(), range)),
      incoming_(incoming.subspan(range.begin, range.size())),
      arrived_(incoming_) {
  if (server() == kAnyRank) turn();
}

void Link::request(Request request) {
  request.sequence = ++sequence_;
  request.shard = shard_;
  request.clock = pushes_;
  request.version = version_;
  if (request.flags & Request::kPush) {
    request.read_s = read_s_;
    request.offset = static_cast<int64_t>(outbox_offset(parameters_, config_, pushes_));
    ++pushes_;
    push_sequence_ = sequence_;
  }
  keep_up();
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
  pieces_.clear();
  handles_.push_back(node_.endpoint().receive(
      server(), reply_tag(stream), std::as_writable_bytes(std::span<Reply>(&reply_, 1))));
  if (!(request_.flags & Request::kHeaderOnly) && !incoming_.empty() && !shares_) {
    if (request_.flags & Request::kLayers)
      pieces_ = forward_pieces_;
    else
      pieces_.push_back({range_.begin, range_.begin + incoming_.size()});
  }
  for (size_t i = 0; i < pieces_.size(); ++i)
    handles_.push_back(node_.endpoint().receive(
        server(), parameters_tag(stream, i),
        writable_bytes_of(incoming_.subspan(pieces_[i].begin - range_.begin, pieces_[i].size()))));
  missing_ = handles_.size();
}

void Link::transmit(Sent& sent) {
  sent.request.epoch = where_.epoch();
  sending_.push_back(node_.endpoint().send(
      server(), request_tag(), std::as_bytes(std::span<const Request>(&sent.request, 1))));
  for (const Sent::Part& part : sent.parts)
    sending_.push_back(node_.endpoint().send(server(), part.tag, part.data));
}

// With the last request.
void Link::send_part(Tag tag, std::span<const std::byte> data) {
  sending_.push_back(node_.endpoint().send(server(), tag, data));
  if (has_heirs()) sent_.back().parts.push_back({tag, data});
}

void Link::send_gradients(size_t piece, std::span<const std::byte> data) {
  send_part(gradient_tag(ring_.stream(shard_, push_sequence_), piece), data);
}

void Link::send_keys(std::span<const uint64_t> keys) {
  if (!keys.empty()) send_part(keys_tag(ring_.stream(shard_, sequence_)), bytes_of(keys));
}

void Link::finish_sending() {
  keep_up();
  while (!sends_are_done()) continue;
  sending_.clear();
  if (!has_heirs()) return sent_.clear();
  while (!sent_.empty() && sent_.front().request.sequence <= acknowledged_) sent_.pop_front();
  for (Sent& sent : sent_) copy_parts(sent);
}

// False: they go to another server now.
bool Link::sends_are_done() {
  if (has_heirs()) return sends_to_heirs_are_done();
  for (Handle& handle : sending_)
    if (handle.pending()) require_done(node_, node_.endpoint().wait(handle, node_.timeout_s()));
  return true;
}

// The server may be lost, or hand over to another and listen no more.
bool Link::sends_to_heirs_are_done() {
  const size_t count = sending_.size();
  while (std::any_of(sending_.begin(), sending_.begin() + static_cast<std::ptrdiff_t>(count),
                     [](const Handle& handle) { return handle.pending(); })) {
    sending_.push_back(std::move(where_.notice()));
    const auto [i, completion] = node_.endpoint().wait_any(sending_, node_.timeout_s());
    where_.notice() = std::move(sending_.back());
    sending_.pop_back();
    if (i == count) {
      if (noticed(completion)) return false;
    } else if (completion.state == State::kPeerLost) {
      turn_to_heir(completion.peer);
      return false;
    } else {
      require_done(node_, completion);
    }
  }
  return true;
}

void Link::copy_parts(Sent& sent) {
  if (sent.parts.empty() || sent.copy.size() > 0) return;
  size_t bytes = 0;
  for (const Sent::Part& part : sent.parts) bytes += part.data.size();
  sent.copy = Buffer<std::byte>(bytes);
  std::span<std::byte> left = sent.copy.span();
  for (Sent::Part& part : sent.parts) {
    const std::span<std::byte> mine = left.first(part.data.size());
    node_.clock().arithmetic().copy(part.data, mine);
    part.data = mine;
    left = left.subspan(mine.size());
  }
  node_.clock().charge({.flops = 0, .memory_bytes = 2.0 * static_cast<double>(bytes)});
}

void Link::turn_to_heir(Rank lost) {
  if (lost != server()) return;
  where_.lose(lost);
  turn();
}

// To the head of the chain as it is known here.
void Link::turn() {
  sending_.clear();
  where_.turn();
  context_.recorder.count("heirs_asked");
  context_.log.info(
      fmt::format("turns to rank {} for shard {} in epoch {}", server(), shard_, where_.epoch()));
  if (awaits()) expect_reply();
  for (Sent& sent : sent_)
    if (sent.request.sequence > acknowledged_) transmit(sent);
}

bool Link::noticed(const Completion& completion) {
  if (!where_.noticed(completion)) return false;
  turn();
  return true;
}

// With what servers have said, before anything is sent to one that does not listen any more.
void Link::keep_up() {
  if (!has_heirs()) return;
  for (;;) {
    const std::optional<Completion> completion = node_.endpoint().test(where_.notice());
    if (!completion) break;
    noticed(*completion);
  }
  if (!where_.is_left()) turn_to_heir(server());
}

bool Link::ended(size_t index, const Completion& completion) {
  const size_t bytes = require_done(node_, completion);
  --missing_;
  if (index == 0) {
    check(reply_, bytes);
    if (reply_.offset >= 0) find_in_window();
    if (reply_.elements == 0 || reply_.offset >= 0) {  // no parameters will follow
      missing_ = 0;
      pieces_.clear();
      handles_.resize(1);
    }
  } else if (bytes != pieces_[index - 1].size() * sizeof(float)) {
    throw FabricError(FabricError::Kind::kProtocol, server(),
                      fmt::format("rank {} sent {} bytes of parameters instead of {}", server(),
                                  bytes, pieces_[index - 1].size() * sizeof(float)));
  }
  arrived_s_ = node_.clock().now();
  if (missing_ > 0) return false;
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
    arrived_ = floats_in(*context_.window, server(), reply_.offset, range_.size());
  if (!context_.window || arrived_.empty())
    throw FabricError(
        FabricError::Kind::kProtocol, server(),
        fmt::format("rank {} says that its parameters lie outside of its window", server()));
  shares_ = true;
}

void Link::leave_gradients(Range range, std::span<const float> gradients) {
  PhaseScope scope(context_.watch, Phase::kCommunicate);
  const auto offset = static_cast<int64_t>(outbox_offset(parameters_, config_, pushes_));
  const std::span<float> outbox =
      floats_in(*context_.window, node_.endpoint().rank(), offset, parameters_);
  if (outbox.data() == gradients.data()) return;  // they were computed there
  node_.clock().arithmetic().copy(gradients.subspan(range.begin, range.size()),
                                  outbox.subspan(range.begin, range.size()));
  node_.clock().charge({.flops = 0, .memory_bytes = 8.0 * static_cast<double>(range.size())});
}

// Unless its answer is here, the server may read the last gradient at any time from now on.
void Link::secure_gradients() {
  if (!shares_ || !awaits()) return;
  Request secure;
  secure.flags = Request::kSecure;
  request(secure);
  std::byte nothing{};
  Handle secured = node_.endpoint().receive(server(), secured_tag(ring_.stream(shard_, sequence_)),
                                            std::span<std::byte>(&nothing, 1));
  finish(node_, secured);
}

void Link::read(std::span<float> parameters) const {
  std::copy(arrived_.begin(), arrived_.end(),
            parameters.begin() + static_cast<std::ptrdiff_t>(range_.begin));
}

void Link::read(std::span<float> parameters, Range range) const {
  const std::span<const float> part = arrived_.subspan(range.begin - range_.begin, range.size());
  std::copy(part.begin(), part.end(),
            parameters.begin() + static_cast<std::ptrdiff_t>(range.begin));
}

void Link::check(const Reply& reply, size_t bytes) {
  const std::string fault = fault_of(reply, bytes, pull_sequence_, incoming_.size());
  if (!fault.empty())
    throw FabricError(FabricError::Kind::kProtocol, server(),
                      fmt::format("the reply of rank {} cannot be meant: {}", server(), fault));
  if (reply.kind == Reply::kRefused)
    throw FabricError(
        FabricError::Kind::kProtocol, server(),
        fmt::format("rank {} refused to go on with this worker; its log says why", server()));
  if (reply.kind == Reply::kDiverged)
    throw DivergedError("the loss of a worker is not a finite number any more");
  // A worker sees its own pushes: those that it had sent before it asked.
  if (reply.accounted < pushed_before_)
    throw Error(fmt::format("rank {} answered with {} of this worker's {} pushes", server(),
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
                  server(), reply.oldest, reply.version, clock, request_.wanted, reply.bound));
}

}  // namespace tutti::parameter_server
