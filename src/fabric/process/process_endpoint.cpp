#include "fabric/process/process_endpoint.h"

#include "core/error.h"
#include "fabric/process/shared_window.h"

namespace tutti::process {

ProcessEndpoint::ProcessEndpoint(Reactor& reactor, std::vector<std::string> roles)
    : reactor_(reactor), roles_(std::move(roles)) {}

ProcessEndpoint::~ProcessEndpoint() = default;

Handle ProcessEndpoint::send(Rank to, Tag tag, std::span<const std::byte> data) {
  TUTTI_CHECK(to >= 0 && to < size());
  reactor_.check_stop();
  reactor_.look();
  return {this, OperationTable::id_of(reactor_.transport().send(to, tag, data))};
}

Handle ProcessEndpoint::receive(Rank from, Tag tag, std::span<std::byte> buffer) {
  TUTTI_CHECK(from >= kAnyRank && from < size());
  reactor_.check_stop();
  reactor_.look();
  return {this, OperationTable::id_of(reactor_.transport().receive(from, tag, buffer))};
}

Completion ProcessEndpoint::take(Handle& handle, Operation& operation) {
  Completion result = operation.result;
  // A peer that gave up because of the first loss counts as lost too, but is not the reason.
  if (result.state == State::kPeerLost)
    result.peer = reactor_.membership().ends_waits().value_or(result.peer);
  reactor_.transport().operations().give_back(operation);
  handle.release();
  return result;
}

std::optional<Completion> ProcessEndpoint::ended_by_loss(Handle& handle, Operation& operation) {
  const std::optional<Rank> lost = reactor_.membership().ends_waits();
  if (!lost) return std::nullopt;
  const Tag tag = operation.tag;
  const bool sending = operation.sending;
  const Completion result = cancel(handle);
  // What arrived in the meantime counts. A send that cannot be called back is over, too, but
  // nothing says that anybody gets it.
  if (!sending && (result.state == State::kDone || result.state == State::kTruncated))
    return result;
  return Completion{State::kPeerLost, *lost, tag, 0};
}

Completion ProcessEndpoint::wait(Handle& handle, double timeout_s) {
  Operation& operation = reactor_.transport().operations().find(handle);
  const auto done = [&] { return !operation.pending() || reactor_.membership().ends_waits(); };
  const bool ended = reactor_.until(done, timeout_s);
  if (!operation.pending()) return take(handle, operation);
  if (!ended) return {State::kTimedOut, operation.peer, operation.tag, 0};
  return *ended_by_loss(handle, operation);
}

std::pair<size_t, Completion> ProcessEndpoint::wait_any(std::span<Handle> handles,
                                                        double timeout_s) {
  OperationTable& operations = reactor_.transport().operations();
  size_t first = handles.size();
  size_t ready = handles.size();
  for (size_t i = handles.size(); i-- > 0;)
    if (handles[i].pending()) first = i;
  if (first == handles.size()) {
    reactor_.check_stop();
    return {first, {State::kTimedOut, kAnyRank, {}, 0}};
  }
  const auto done = [&] {
    for (size_t i = first; i < handles.size(); ++i) {
      if (!handles[i].pending() || operations.find(handles[i]).pending()) continue;
      ready = i;
      return true;
    }
    return reactor_.membership().ends_waits().has_value();
  };
  const bool ended = reactor_.until(done, timeout_s);
  if (ready < handles.size()) return {ready, take(handles[ready], operations.find(handles[ready]))};
  Operation& operation = operations.find(handles[first]);
  if (ended) return {first, *ended_by_loss(handles[first], operation)};
  return {handles.size(), {State::kTimedOut, operation.peer, operation.tag, 0}};
}

std::optional<Completion> ProcessEndpoint::test(Handle& handle) {
  reactor_.check_stop();
  reactor_.progress();
  Operation& operation = reactor_.transport().operations().find(handle);
  if (!operation.pending()) return take(handle, operation);
  return ended_by_loss(handle, operation);
}

// Never waits, and never throws for a stop: it runs in destructors, while a strategy unwinds.
Completion ProcessEndpoint::cancel(Handle& handle) {
  Transport& transport = reactor_.transport();
  Operation& operation = transport.operations().find(handle);
  transport.cancel(operation);
  return take(handle, operation);
}

Window* ProcessEndpoint::open_window(size_t bytes, double timeout_s) {
  if (!reactor_.neighbourhood().one_host()) return nullptr;
  windows_.push_back(open_shared_window(reactor_, bytes, timeout_s));
  return windows_.back().get();
}

}  // namespace tutti::process
