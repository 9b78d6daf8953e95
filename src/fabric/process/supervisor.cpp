#include "fabric/process/supervisor.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "core/error.h"
#include "fabric/outcome.h"
#include "fabric/process/lifeline.h"
#include "fabric/process/process_node.h"

namespace tutti::process {
namespace {

using Type = ControlMessage::Type;

constexpr int kRoundMs = 50;  // how soon a stop is noticed that interrupts no system call
constexpr double kByeS = 2;
constexpr double kGiveUpS = 2;

std::string describe_death(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return fmt::format("exited with code {}", info.si_status);
  return fmt::format("was killed by signal {} ({})", info.si_status, strsignal(info.si_status));
}

}  // namespace

Supervisor::Supervisor(const std::vector<std::string>& roles, const ProcessOptions& options,
                       const Fabric::Body& body, const std::atomic<bool>& stop)
    : roles_(roles),
      options_(options),
      body_(body),
      stop_(stop),
      board_(static_cast<int>(roles.size())),
      children_(roles.size()),
      gathered_(options.remote == 0) {
  board_.set_start_ns(monotonic_ns());
  board_.set_may_fetch(options.fetch);
  for (Child& child : children_) child.restarts_left = options.restarts;
  neighbourhood_.joined.assign(roles.size(), 0);
  const Rank end = options.remote_end < 0 ? size() : options.remote_end;
  for (Rank rank = end - options.remote; rank < end; ++rank) {
    child(rank).joins = true;
    neighbourhood_.joined[static_cast<size_t>(rank)] = 1;
  }
}

Supervisor::~Supervisor() {
  for (Child& child : children_) {
    if (child.pid == 0) continue;
    kill(child);
    waitpid(child.pid, nullptr, 0);
    sweep_segments_of(child.pid);
  }
}

// Nodes elsewhere go by themselves when their connection ends.
void Supervisor::kill(Child& child) {
  if (child.pid > 0) ::kill(child.pid, SIGKILL);
  if (child.joins && child.control) child.control->close();
}

std::vector<NodeOutcome> Supervisor::run() {
  if (options_.remote > 0 && !gather()) return nobody_came();
  board_.set_start_ns(monotonic_ns());
  for (Rank rank = 0; rank < size(); ++rank)
    if (!child(rank).joins) start(rank);
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

void Supervisor::start(Rank rank) {
  auto [ours, theirs] = control_pair();
  std::fflush(nullptr);  // or the child would write our buffers a second time
  const pid_t launcher = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw Error(std::string("cannot start a node: ") + std::strerror(errno));
  if (pid == 0) {
    die_with(launcher);
    signal(SIGINT, SIG_IGN);  // the launcher hears of it and tells the nodes to stop
    signal(SIGTERM, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    // A descriptor that another node's launcher side is reached by must not live on in here.
    for (Child& other : children_) {
      if (other.control) other.control->close();
      other.pidfd.reset();
    }
    if (lobby_) lobby_->close();
    ours.reset();
    const NodeSetup setup{
        rank, child(rank).incarnation, &roles_, options_.timeout_s, neighbourhood_, nullptr};
    run_node(setup, board_, ControlSocket(std::move(theirs)), body_);
  }
  Child& started = child(rank);
  started.pid = pid;
  started.pidfd = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (started.pidfd.get() < 0)
    throw Error(std::string("cannot watch a node: ") + std::strerror(errno));
  started.control = std::make_unique<ControlSocket>(std::move(ours));
  started.greeted = started.ready = false;
  started.heard_ns = 0;
  started.cut_off_for.clear();
  board_.steps(rank).store(0);
}

void Supervisor::supervise() {
  std::vector<pollfd> polled;
  for (const Child& child : children_) {
    const bool open = child.control && child.control->fd() >= 0;
    const bool backlog = open && !child.control->flush();
    const auto events = static_cast<short>(POLLIN | (backlog ? POLLOUT : 0));
    polled.push_back({open ? child.control->fd() : -1, events, 0});
    polled.push_back({child.pid != 0 ? child.pidfd.get() : -1, POLLIN, 0});
  }
  if (lobby_) lobby_->watch(polled);
  const int events = poll(polled.data(), polled.size(), kRoundMs);
  if (lobby_) serve_lobby();
  if (lobby_) ping();
  if (events <= 0) return;
  for (Rank rank = 0; rank < size(); ++rank) {
    const pollfd& control = polled[static_cast<size_t>(rank) * 2];
    const pollfd& process = polled[static_cast<size_t>(rank) * 2 + 1];
    if (control.revents & (POLLIN | POLLHUP | POLLERR)) listen(rank);
    if ((control.revents & POLLOUT) && child(rank).control) {
      child(rank).control->flush();
      board_.news().fetch_add(1, std::memory_order_release);
    }
    if (process.revents != 0) bury(rank);
  }
  start_when_ready();
}

void Supervisor::listen(Rank rank) {
  try {
    const bool open = child(rank).control->fill();
    while (const auto message = child(rank).control->next()) handle(rank, *message);
    if (open) return;
    child(rank).control->close();
    if (child(rank).joins) part(rank, "closed its connection");
  } catch (const DataError& error) {
    // Who speaks nonsense is not a member any more.
    std::fprintf(stderr, "tutti: rank %d: %s\n", rank, error.what());
    child(rank).control->close();
    cut_off(rank, std::string("sent what is no message: ") + error.what());
  }
}

// The death of a forked one comes through its pidfd; of one elsewhere nothing more will come.
void Supervisor::cut_off(Rank rank, const std::string& why) {
  if (child(rank).cut_off_for.empty()) child(rank).cut_off_for = why;
  kill(child(rank));
  if (child(rank).joins) part(rank, why);
}

void Supervisor::check_startup() {
  if (started_) return;
  const double elapsed_s = static_cast<double>(monotonic_ns() - board_.start_ns()) * 1e-9;
  // Those who wait for others in vain give up by themselves, and can say for whom they waited.
  if (elapsed_s < options_.timeout_s + kGiveUpS) return;
  for (Rank rank = 0; rank < size(); ++rank)
    if (!child(rank).ready && running(child(rank)))
      cut_off(rank, fmt::format("was not ready within {} s", options_.timeout_s));
}

void Supervisor::start_when_ready() {
  if (!gathered_) return;
  if (started_) {
    for (Rank rank = 0; rank < size(); ++rank) {
      if (!child(rank).ready || child(rank).incarnation == 0) continue;
      give_start(rank);
    }
    return;
  }
  for (const Child& child : children_)
    if (!child.ready && running(child) && !child.ended) return;
  started_ = true;
  startup_s_ = static_cast<double>(monotonic_ns() - board_.start_ns()) * 1e-9;
  for (Rank rank = 0; rank < size(); ++rank) give_start(rank);
}

void Supervisor::give_start(Rank rank) {
  child(rank).ready = false;
  const auto elapsed_ns = static_cast<uint64_t>(monotonic_ns() - board_.start_ns());
  tell(rank, {Type::kStart, rank, 0, elapsed_ns, {}});
}

void Supervisor::check_stop() {
  if (!stopping_ && stop_.load()) {
    stopping_ = true;
    kill_at_ns_ = deadline_after(options_.stop_s);
    board_.stop().store(1);
    for (Rank rank = 0; rank < size(); ++rank) tell(rank, {Type::kStop, rank, 0, 0, {}});
  }
  if (!stopping_ || monotonic_ns() < kill_at_ns_) return;
  for (Rank rank = 0; rank < size(); ++rank)
    if (!child(rank).ended && running(child(rank)))
      cut_off(rank, fmt::format("did not stop within {} s", options_.stop_s));
}

bool Supervisor::all_ended() const {
  return std::all_of(children_.begin(), children_.end(),
                     [](const Child& child) { return child.ended; });
}

void Supervisor::bury(Rank rank) {
  Child& dead = child(rank);
  // What it said before it died counts: its result may be on the way.
  for (bool more = true; more && dead.control->fd() >= 0; more = dead.control->more()) listen(rank);
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(dead.pid), &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0)
    return;
  sweep_segments_of(dead.pid);
  dead.pid = 0;
  dead.pidfd.reset();
  dead.control->close();
  std::string how = describe_death(info);
  if (!dead.cut_off_for.empty()) how = fmt::format("{}; it {}", dead.cut_off_for, how);
  end_or_restart(rank, how);
}

void Supervisor::end_or_restart(Rank rank, const std::string& how) {
  Child& dead = child(rank);
  tell_lost(rank);
  if (dead.ended) return;
  const bool may_restart = !options_.may_restart || options_.may_restart(rank);
  if (dead.restarts_left > 0 && !stopping_ && may_restart) {
    --dead.restarts_left;
    ++dead.incarnation;
    dead.early.clear();
    if (dead.joins)
      wait_for(rank, deadline_after(options_.join_timeout_s));
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

void Supervisor::dismiss() {
  for (Rank rank = 0; rank < size(); ++rank) tell(rank, {Type::kBye, rank, 0, 0, {}});
  const int64_t deadline_ns = deadline_after(kByeS);
  const auto any_left = [&] {
    return std::any_of(children_.begin(), children_.end(),
                       [&](const Child& child) { return running(child); });
  };
  while (any_left()) {
    if (monotonic_ns() > deadline_ns)
      for (Child& child : children_)
        if (running(child)) kill(child);
    supervise();
  }
}

}  // namespace tutti::process
