#include "fabric/process/supervisor.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "core/error.h"
#include "fabric/outcome.h"
#include "fabric/process/process_clock.h"
#include "fabric/process/process_node.h"

namespace tutti::process {
namespace {

using Type = ControlMessage::Type;

constexpr int kRoundMs = 50;  // how soon a stop is noticed that interrupts no system call
constexpr double kByeS = 2;
constexpr double kGiveUpS = 2;

}  // namespace

Supervisor::Supervisor(const std::vector<std::string>& roles, const ProcessOptions& options,
                       const Fabric::Body& body, const std::atomic<bool>& stop)
    : roles_(roles),
      options_(options),
      body_(body),
      stop_(stop),
      board_(static_cast<int>(roles.size())),
      children_(roles.size()),
      relay_(board_, children_),
      guests_(options_, roles_, children_, neighbourhood_, relay_),
      silence_(board_, options_.timeout_s) {
  board_.set_start_ns(monotonic_ns());
  board_.set_may_fetch(options.fetch);
  for (Child& child : children_) child.restarts_left = options.restarts;
}

std::vector<NodeOutcome> Supervisor::run() {
  if (guests_.expected() && !gather()) return nobody_came();
  board_.set_start_ns(monotonic_ns());
  for (Rank rank = 0; rank < children_.size(); ++rank)
    if (!children_[rank].joins) start(rank);
  while (!all_ended()) {
    supervise();
    check_startup();
    check_silence();
    check_stop();
  }
  dismiss();
  std::vector<NodeOutcome> outcomes;
  for (Child& child : children_) outcomes.push_back(std::move(child.outcome));
  return outcomes;
}

bool Supervisor::gather() {
  const int64_t until_ns = deadline_after(options_.join_timeout_s);
  guests_.invite(until_ns);
  while (!guests_.all_came()) {
    supervise();
    if (stop_.load() || monotonic_ns() > until_ns) return false;
  }
  guests_.seat();
  return true;
}

std::vector<NodeOutcome> Supervisor::nobody_came() {
  NodeOutcome outcome;
  if (stop_.load()) {
    outcome.kind = NodeOutcome::Kind::kInterrupted;
    outcome.exit_code = kExitInterrupted;
    outcome.error = "interrupted";
  } else {
    outcome.kind = NodeOutcome::Kind::kLost;
    outcome.exit_code = kExitPeerLost;
    outcome.error = guests_.why_too_few();
  }
  guests_.turn_away(outcome.error);
  return std::vector<NodeOutcome>(static_cast<size_t>(children_.size()), outcome);
}

void Supervisor::start(Rank rank) {
  auto [ours, theirs] = control_pair();
  Child& started = children_[rank];
  started.process.start([&, &mine = theirs, &launchers = ours] {
    // A descriptor that another node's launcher side is reached by must not live on in here.
    for (Child& other : children_) {
      if (other.control) other.control->close();
      other.process.disown();
    }
    guests_.close();
    launchers.reset();
    const NodeSetup setup{rank,   started.incarnation, &roles_, options_.timeout_s, neighbourhood_,
                          nullptr};
    run_node(setup, board_, ControlSocket(std::move(mine)), body_);
  });
  started.control = std::make_unique<ControlSocket>(std::move(ours));
  started.begin();
  board_.steps(rank).store(0);
}

void Supervisor::supervise() {
  std::vector<pollfd> polled;
  for (const Child& child : children_) {
    const bool open = child.connected();
    const bool backlog = open && !child.control->flush();
    const auto events = static_cast<short>(POLLIN | (backlog ? POLLOUT : 0));
    polled.push_back({open ? child.control->fd() : -1, events, 0});
    polled.push_back({child.process.pidfd(), POLLIN, 0});
  }
  guests_.watch(polled);
  const int events = poll(polled.data(), polled.size(), kRoundMs);
  guests_.serve();
  if (started_)
    for (const Rank rank : guests_.missed(stopping_))
      end_or_restart(rank, "was lost, and nobody joined in its place");
  if (events <= 0) return;
  for (Rank rank = 0; rank < children_.size(); ++rank) {
    const pollfd& control = polled[static_cast<size_t>(rank) * 2];
    const pollfd& process = polled[static_cast<size_t>(rank) * 2 + 1];
    if (control.revents & (POLLIN | POLLHUP | POLLERR)) listen(rank);
    if (control.revents & POLLOUT) relay_.flush(rank);
    if (process.revents != 0) bury(rank);
  }
  start_when_ready();
}

void Supervisor::listen(Rank rank) {
  Child& child = children_[rank];
  try {
    const bool open = child.control->fill();
    while (const auto message = child.control->next()) handle(rank, *message);
    if (open) return;
    child.control->close();
    if (child.joins) part(rank, "closed its connection");
  } catch (const DataError& error) {
    // Who speaks nonsense is not a member any more.
    std::fprintf(stderr, "tutti: rank %d: %s\n", rank, error.what());
    child.control->close();
    cut_off(rank, std::string("sent what is no message: ") + error.what());
  }
}

void Supervisor::handle(Rank rank, const ControlMessage& message) {
  Child& from = children_[rank];
  from.unanswered = 0;
  if (from.joins) from.heard_ns = monotonic_ns();
  if (message.type != Type::kPing && !guests_.seated())
    throw DataError("a node spoke before it was given a rank");
  check_message(from, rank, message);
  switch (message.type) {
    case Type::kHello:
      relay_.greet(rank);
      break;
    case Type::kReady:
      from.ready = true;
      break;
    case Type::kAddress:
      relay_.forward_address(rank, message);
      break;
    case Type::kWindow:
      relay_.forward_window(rank, message);
      break;
    case Type::kResult:
      settle(rank, decode_outcome(message.body));
      break;
    case Type::kPing:
      from.steps = message.number;
      break;
    case Type::kJoin:
      throw DataError("a node asked to join twice");
    case Type::kAccepted:
    case Type::kRefused:
    case Type::kWelcome:
    case Type::kStart:
    case Type::kLost:
    case Type::kJoined:
    case Type::kStop:
    case Type::kBye:
      throw DataError("a node sent a message that only the launcher sends");
  }
}

void Supervisor::settle(Rank rank, NodeOutcome outcome) {
  Child& from = children_[rank];
  if (from.ended) throw DataError("a node sent two results");
  if (outcome.lost_peer >= children_.size())
    throw DataError("a node lost a peer that there is not");
  const bool gave_up = outcome.kind != NodeOutcome::Kind::kDone;
  // A node that names no lost peer gave up at its deadline.
  if (outcome.exit_code == kExitPeerLost && outcome.lost_peer == kAnyRank) silence_.note_given_up();
  from.outcome = std::move(outcome);
  from.ended = true;
  // Nobody should wait for a node that has given up; in a stop all of them do.
  if (gave_up && !stopping_) relay_.tell_lost(rank);
}

void Supervisor::start_when_ready() {
  if (!guests_.seated()) return;
  if (started_) {
    for (Rank rank = 0; rank < children_.size(); ++rank) {
      if (!children_[rank].ready || children_[rank].incarnation == 0) continue;
      give_start(rank);
    }
    return;
  }
  for (const Child& child : children_)
    if (!child.ready && child.running() && !child.ended) return;
  started_ = true;
  startup_s_ = static_cast<double>(monotonic_ns() - board_.start_ns()) * 1e-9;
  for (Rank rank = 0; rank < children_.size(); ++rank) give_start(rank);
}

void Supervisor::give_start(Rank rank) {
  children_[rank].ready = false;
  const auto elapsed_ns = static_cast<uint64_t>(monotonic_ns() - board_.start_ns());
  relay_.tell(rank, {Type::kStart, rank, 0, elapsed_ns, {}});
}

void Supervisor::check_startup() {
  if (started_) return;
  const double elapsed_s = static_cast<double>(monotonic_ns() - board_.start_ns()) * 1e-9;
  // Those who wait for others in vain give up by themselves, and can say for whom they waited.
  if (elapsed_s < options_.timeout_s + kGiveUpS) return;
  for (Rank rank = 0; rank < children_.size(); ++rank)
    if (!children_[rank].ready && children_[rank].running())
      cut_off(rank, fmt::format("was not ready within {} s", options_.timeout_s));
}

void Supervisor::check_silence() {
  // Before the start check_startup() has its own deadline and can say who was not ready.
  if (!started_) return;
  for (const SilenceCheck::Silent& silent : silence_.look(children_, monotonic_ns()))
    cut_off(silent.rank, silent.why);
}

void Supervisor::check_stop() {
  if (!stopping_ && stop_.load()) {
    stopping_ = true;
    kill_at_ns_ = deadline_after(options_.stop_s);
    board_.stop().store(1);
    for (Rank rank = 0; rank < children_.size(); ++rank)
      relay_.tell(rank, {Type::kStop, rank, 0, 0, {}});
  }
  if (!stopping_ || monotonic_ns() < kill_at_ns_) return;
  for (Rank rank = 0; rank < children_.size(); ++rank)
    if (!children_[rank].ended && children_[rank].running())
      cut_off(rank, fmt::format("did not stop within {} s", options_.stop_s));
}

bool Supervisor::all_ended() const {
  return std::all_of(children_.begin(), children_.end(),
                     [](const Child& child) { return child.ended; });
}

void Supervisor::dismiss() {
  for (Rank rank = 0; rank < children_.size(); ++rank)
    relay_.tell(rank, {Type::kBye, rank, 0, 0, {}});
  const int64_t deadline_ns = deadline_after(kByeS);
  const auto any_left = [&] {
    return std::any_of(children_.begin(), children_.end(),
                       [](const Child& child) { return child.running(); });
  };
  while (any_left()) {
    if (monotonic_ns() > deadline_ns)
      for (Child& child : children_)
        if (child.running()) child.kill();
    supervise();
  }
}

// The death of a forked one comes through its pidfd; of one elsewhere nothing more will come.
void Supervisor::cut_off(Rank rank, const std::string& why) {
  Child& child = children_[rank];
  if (child.cut_off_for.empty()) child.cut_off_for = why;
  child.kill();
  if (child.joins) part(rank, why);
}

void Supervisor::part(Rank rank, const std::string& why) {
  // Before the run has begun its place is simply free again.
  if (!guests_.seated()) return guests_.await(rank, monotonic_ns());
  end_or_restart(rank, fmt::format("at {} {}", children_[rank].origin, why));
}

void Supervisor::bury(Rank rank) {
  Child& dead = children_[rank];
  // What it said before it died counts: its result may be on the way.
  for (bool more = true; more && dead.connected(); more = dead.control->more()) listen(rank);
  const std::optional<std::string> end = dead.process.reap();
  if (!end) return;
  dead.control->close();
  const std::string how =
      dead.cut_off_for.empty() ? *end : fmt::format("{}; it {}", dead.cut_off_for, *end);
  end_or_restart(rank, how);
}

void Supervisor::end_or_restart(Rank rank, const std::string& how) {
  Child& dead = children_[rank];
  relay_.tell_lost(rank);
  if (dead.ended) return;
  const bool may_restart = !options_.may_restart || options_.may_restart(rank);
  if (dead.restarts_left > 0 && !stopping_ && may_restart) {
    --dead.restarts_left;
    ++dead.incarnation;
    dead.early.clear();
    if (dead.joins)
      guests_.await(rank, deadline_after(options_.join_timeout_s));
    else
      start(rank);
    return;
  }
  // In a stop nobody is missed. One that does not react is killed in the end, by us; the reason why
  // the run has ended is still that it was asked to.
  NodeOutcome outcome;
  outcome.kind = stopping_ ? NodeOutcome::Kind::kInterrupted : NodeOutcome::Kind::kLost;
  outcome.exit_code = stopping_ ? kExitInterrupted : kExitPeerLost;
  outcome.error = fmt::format("{}rank {} {}", stopping_ ? "interrupted: " : "", rank, how);
  dead.outcome = std::move(outcome);
  dead.ended = true;
}

}  // namespace tutti::process
