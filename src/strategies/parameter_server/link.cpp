#include "strategies/parameter_server/link.h"

#include <fmt/format.h>

#include "core/error.h"
#include "fabric/exchange.h"

namespace tutti::parameter_server {

Link::Link(Context& context, Rank server, Range range, std::span<float> incoming)
    : context_(context),
      node_(context.node),
      server_(server),
      range_(range),
      incoming_(incoming.subspan(range.begin, range.size())) {}

void Link::request(Request request) {
  Endpoint& endpoint = node_.endpoint();
  request.sequence = ++sequence_;
  request.clock = pushes_;
  if (request.flags & Request::kPush) {
    request.version = version_;
    request.read_s = read_s_;
    ++pushes_;
    push_sequence_ = sequence_;
  }
  if (request.flags & Request::kPull) {
    TUTTI_CHECK(missing_ == 0);
    request_ = request;
    pushed_before_ = pushes_;
    pull_sequence_ = sequence_;
    snapshot_ = request.flags & Request::kSnapshot;
    handles_.clear();
    handles_.push_back(endpoint.receive(server_, reply_tag(sequence_),
                                        std::as_writable_bytes(std::span<Reply>(&reply_, 1))));
    if (!(request.flags & Request::kHeaderOnly) && !incoming_.empty())
      handles_.push_back(
          endpoint.receive(server_, parameters_tag(sequence_), writable_bytes_of(incoming_)));
    missing_ = handles_.size();
  }
  sent_.push_back(request);
  sending_.push_back(endpoint.send(server_, request_tag(),
                                   std::as_bytes(std::span<const Request>(&sent_.back(), 1))));
}

void Link::send_gradients(size_t piece, std::span<const std::byte> data) {
  sending_.push_back(node_.endpoint().send(server_, gradient_tag(push_sequence_, piece), data));
}

void Link::send_keys(std::span<const uint64_t> keys) {
  if (!keys.empty())
    sending_.push_back(node_.endpoint().send(server_, keys_tag(sequence_), bytes_of(keys)));
}

void Link::finish_sending() {
  for (Handle& handle : sending_)
    if (handle.pending()) finish(node_, handle);
  sending_.clear();
  sent_.clear();
}

bool Link::ended(size_t index, const Completion& completion) {
  const size_t bytes = require_done(node_, completion);
  --missing_;
  if (index == 0) {
    check(reply_, bytes);
    if (reply_.elements == 0) missing_ = 0;  // no parameters will follow
  } else if (bytes != incoming_.size() * sizeof(float)) {
    throw FabricError(FabricError::Kind::kProtocol, server_,
                      fmt::format("rank {} sent {} bytes of parameters instead of {}", server_,
                                  bytes, incoming_.size() * sizeof(float)));
  }
  if (missing_ > 0) return false;
  arrived_s_ = node_.clock().now();
  return true;
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
