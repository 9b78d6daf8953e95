#include "fabric/virtual/virtual_node.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace tutti::simulation {
namespace {

// What looking in vain costs. Without it a node that polls would stop time, and with it the peer
// that it polls for.
constexpr double kPoll_s = 1e-6;

// Blocked until one of these operations has ended; marks them, so that others do not wake the node.
class OperationsWaiting : public Waiting {
 public:
  OperationsWaiting(Mail& mail, Rank rank, std::span<Handle> handles)
      : mail_(mail), rank_(rank), handles_(handles) {
    watch(true);
  }
  ~OperationsWaiting() override { watch(false); }
  OperationsWaiting(const OperationsWaiting&) = delete;
  OperationsWaiting& operator=(const OperationsWaiting&) = delete;

  std::string describe() const override {
    std::string text;
    for (const Handle& handle : handles_) {
      const Operation* operation = handle.pending() ? mail_.find(rank_, handle.id()) : nullptr;
      if (!operation) continue;
      const Completion& wanted = operation->completion;
      text += text.empty() ? "" : " or ";
      text += wanted.peer == kAnyRank ? "any rank" : fmt::format("rank {}", wanted.peer);
      text +=
          fmt::format("{} ({})", operation->is_send ? " to receive" : "", wanted.tag.describe());
    }
    return text.empty() ? "nobody" : text;
  }

 private:
  void watch(bool watched) {
    for (const Handle& handle : handles_)
      if (Operation* operation = handle.pending() ? mail_.find(rank_, handle.id()) : nullptr)
        operation->watched = watched;
  }
  Mail& mail_;
  Rank rank_;
  std::span<Handle> handles_;
};

}  // namespace

Handle VirtualEndpoint::send(Rank to, Tag tag, std::span<const std::byte> data) {
  world_.leave_if_stopped();
  TUTTI_CHECK(to >= 0 && to < size());
  Participant& self = world_.participant(rank_);
  if (!self.members.alive(to)) return {this, world_.mail().fail_send(rank_, to, tag)};
  ++self.traffic.messages_sent;
  self.traffic.bytes_sent += data.size();
  self.bytes_by_peer[to] += data.size();
  if (!self.ended_part) world_.platform().carry(rank_, to, data.size());
  return {this, world_.mail().send(rank_, to, tag, data)};
}

Handle VirtualEndpoint::receive(Rank from, Tag tag, std::span<std::byte> buffer) {
  world_.leave_if_stopped();
  TUTTI_CHECK(from == kAnyRank || (from >= 0 && from < size()));
  return {this, world_.mail().receive(rank_, from, tag, buffer)};
}

Completion VirtualEndpoint::ended(const Handle& handle) {
  Completion completion = world_.mail().cancel(rank_, handle.id());
  if (completion.state == State::kPeerLost)
    completion.peer = world_.participant(rank_).members.named(completion.peer);
  return completion;
}

std::optional<std::pair<size_t, Completion>> VirtualEndpoint::look(std::span<Handle> handles) {
  const Members& members = world_.participant(rank_).members;
  std::optional<std::pair<size_t, Completion>> lost;
  for (size_t i = 0; i < handles.size(); ++i) {
    if (!handles[i].pending()) continue;
    const Operation* operation = world_.mail().find(rank_, handles[i].id());
    TUTTI_CHECK(operation);
    if (operation->completion.state != State::kPending) return std::pair(i, ended(handles[i]));
    if (lost) continue;
    // A receive may name a peer that was lost before it was posted.
    const Rank peer = operation->completion.peer;
    const bool peer_lost =
        peer != kAnyRank && !operation->is_send && !members.alive(peer) && !operation->message;
    if (peer_lost || members.ends_waits())
      lost = {i, {State::kPeerLost, members.named(peer), operation->completion.tag, 0}};
  }
  if (lost) world_.mail().cancel(rank_, handles[lost->first].id());
  return lost;
}

std::pair<size_t, Completion> VirtualEndpoint::wait_any(std::span<Handle> handles,
                                                        double timeout_s) {
  world_.leave_if_stopped();
  if (std::none_of(handles.begin(), handles.end(), [](const Handle& h) { return h.pending(); }))
    return {handles.size(), {State::kTimedOut, kAnyRank, Tag(), 0}};
  const double began_s = now(), polled_before_s = world_.participant(rank_).polled_s;
  const double deadline_s = began_s + (timeout_s > 0 ? timeout_s : kPoll_s);
  bool in_time = true;
  while (true) {
    if (const auto ended = look(handles)) {
      handles[ended->first].release();
      return *ended;
    }
    if (!in_time) return {handles.size(), {State::kTimedOut, kAnyRank, Tag(), 0}};
    const OperationsWaiting waiting(world_.mail(), rank_, handles);
    in_time = world_.block(rank_, deadline_s, waiting);
    if (timeout_s <= 0) world_.participant(rank_).polled_s = polled_before_s + now() - began_s;
  }
}

Completion VirtualEndpoint::wait(Handle& handle, double timeout_s) {
  TUTTI_CHECK(handle.pending());
  const uint64_t id = handle.id();
  const Completion completion = wait_any({&handle, 1}, timeout_s).second;
  if (completion.state != State::kTimedOut) return completion;
  // Whom and what for: the caller's message will say it.
  Completion timed_out = world_.mail().find(rank_, id)->completion;
  timed_out.state = State::kTimedOut;
  return timed_out;
}

std::optional<Completion> VirtualEndpoint::test(Handle& handle) {
  const Completion completion = wait(handle, 0);
  if (completion.state == State::kTimedOut) return std::nullopt;
  return completion;
}

// Never throws: destroying a handle comes here, also while an exception unwinds the body.
Completion VirtualEndpoint::cancel(Handle& handle) {
  const Completion completion = world_.mail().cancel(rank_, handle.id());
  handle.release();
  return completion;
}

Window* VirtualEndpoint::open_window(size_t bytes, double timeout_s) {
  std::unique_ptr<Window> window = simulation::open_window(world_, rank_, bytes, timeout_s);
  if (!window) return nullptr;
  return windows_.emplace_back(std::move(window)).get();
}

double VirtualClock::load() const {
  const Participant& self = world_.participant(rank_);
  const double elapsed_s = now() - self.started_s;
  return elapsed_s > 0 ? self.busy_s / elapsed_s : 0;
}

}  // namespace tutti::simulation
