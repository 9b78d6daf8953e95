#include "fabric/process/reactor.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>

#include "core/error.h"
#include "core/printable.h"
#include "fabric/outcome.h"

namespace tutti::process {
namespace {

using Type = ControlMessage::Type;

// Up to this many nodes each connects to every other before the body starts; in larger runs two
// nodes connect when the first message asks for it, as few topologies use all pairs.
constexpr int kDialAllNodes = 16;
constexpr int kSpins = 50;
constexpr int64_t kSpinNs = 300'000;
constexpr int64_t kYieldNs = 1'500'000;
constexpr int64_t kMillisecondNs = 1'000'000;
// A launcher elsewhere has no board to raise a flag on: its connection is looked at this often by a
// node that is busy, and gets a sign of life this often from one that waits.
constexpr int64_t kLookNs = 2 * kMillisecondNs;
constexpr int64_t kPingNs = 250 * kMillisecondNs;
// A sleeping node wakes this often, to notice that it was stopped; no round takes so long.
constexpr int64_t kLongestSleepMs = 500;
constexpr int64_t kStoppedNs = 1000 * kMillisecondNs;

constexpr double kSpeaksS = 0.5;  // seconds between looks at whether the launcher still speaks
constexpr double kLeaveS = 2;
constexpr uint64_t kMostElapsedNs = 1'000'000'000'000'000'000;  // what a clock can be set back by

constexpr const char* kConnectionLost = "the connection to the launcher is lost";
constexpr const char* kNonsense =
    "the launcher sent what it must not (is it a tutti of this version?): ";

void watch_fd(int epoll, int fd, bool on = true) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (epoll_ctl(epoll, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, fd, &event) != 0)
    throw Error(std::string("cannot watch a file descriptor: ") + std::strerror(errno));
}

}  // namespace

Reactor::Reactor(const NodeSetup& setup, Board& board, ControlSocket control)
    : board_(board),
      control_(std::move(control)),
      rank_(setup.rank),
      incarnation_(setup.incarnation),
      neighbourhood_(setup.neighbourhood),
      stop_(setup.stop),
      timeout_s_(setup.timeout_s),
      joined_(neighbourhood_.joined[static_cast<size_t>(rank_)] != 0),
      placement_(board, rank_),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      windows_(static_cast<size_t>(board.nodes())),
      spins_(board.nodes() > placement_.cores() ? 0 : kSpins) {
  watch_fd(epoll_.get(), control_.fd());
  watch_fd(epoll_.get(), board_.bell(rank_));
  control_.post({Type::kHello, rank_, incarnation_, 0, {}});
  const int64_t deadline_ns = deadline_after(timeout_s_);
  while (true) {
    read_mail();
    if (welcome_) return;
    if (own_user_stops()) throw InterruptedError();
    if (monotonic_ns() >= deadline_ns)
      lose_launcher(fmt::format("the launcher gave no welcome within {} s", timeout_s_));
    block(deadline_ns);
  }
}

void Reactor::get_ready(double timeout_s) {
  const int nodes = board_.nodes();
  if (nodes <= kDialAllNodes)
    for (Rank rank = 0; rank < nodes; ++rank)
      if (rank != rank_) transport_->dial(rank);
  // A node that comes back does not wait for peers who may be computing: messages queue meanwhile.
  if (nodes <= kDialAllNodes && incarnation_ == 0) {
    const auto connected = [&] {
      for (Rank rank = 0; rank < nodes; ++rank)
        if (transport_->connections().lacks(rank)) return false;
      return true;
    };
    if (!until(connected, timeout_s))
      throw FabricError(FabricError::Kind::kTimedOut, kAnyRank, unconnected());
  }
  control_.post({Type::kReady, rank_, incarnation_, 0, {}});
  if (!until([&] { return start_; }, timeout_s))
    throw FabricError(FabricError::Kind::kTimedOut, kAnyRank, "the launcher gave no start");
}

std::string Reactor::unconnected() const {
  std::string ranks;
  for (Rank rank = 0; rank < board_.nodes(); ++rank)
    if (transport_->connections().lacks(rank)) {
      const std::string why = transport_->connections().why_unconnected(rank);
      ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
      if (!why.empty()) ranks += " (" + why + ")";
    }
  std::string text = "rank " + std::to_string(rank_) + " could not connect in time to " + ranks;
  if (!neighbourhood_.one_host())
    text += "; nodes on several hosts need TCP between each other, here over the interface " +
            neighbourhood_.interface;
  return text;
}

void Reactor::announce_window(std::shared_ptr<FileDescriptor> memory, uint64_t bytes) {
  control_.post({Type::kWindow, rank_, losses_, bytes, {}}, std::move(memory));
  send_queued();
}

// A launcher that takes nothing for so long is lost, even if the connection to it is not. In a stop
// the rest stays queued: what the node leaves with comes after it.
void Reactor::send_queued() {
  if (control_.drain(timeout_s_, stop_) || own_user_stops()) return;
  lose_launcher(fmt::format("the launcher has read nothing for {} s", timeout_s_));
}

void Reactor::report(const NodeOutcome& outcome) {
  // The buffers of the body are gone. After a failure the peers are told that this node is lost,
  // and from then on nothing may be read from or written to them on its behalf.
  transport_->cancel_all();
  const bool serve = outcome.kind == NodeOutcome::Kind::kDone;
  control_.post({Type::kResult, rank_, incarnation_, 0, encode_outcome(outcome)});
  send_queued();
  heard_ns_ = monotonic_ns();
  if (serve) {
    const auto over = [&] { return bye_ || own_user_stops(); };
    while (!over()) {
      until_uninterrupted(over, joined_ ? kSpeaksS : 60);
      expect_launcher();
    }
  } else {
    await_bye();
  }
  if (bye_) return;
  leave();
  if (serve) throw InterruptedError();
}

// A remote launcher pings. A launcher that was stopped is waited for as long as a peer.
void Reactor::expect_launcher() {
  if (!joined_ || static_cast<double>(monotonic_ns() - heard_ns_) * 1e-9 < timeout_s_) return;
  lose_launcher(fmt::format("the launcher has said nothing for {} s", timeout_s_));
}

void Reactor::await_bye() {
  while (!bye_ && !own_user_stops()) {
    pollfd launcher{control_.fd(), POLLIN, 0};
    poll(&launcher, 1, static_cast<int>(kPingNs / kMillisecondNs));
    if (joined_) control_.post({Type::kPing, rank_, incarnation_, board_.steps(rank_).load(), {}});
    const bool open = control_.fill();
    while (const auto message = next_mail()) {
      heard_ns_ = monotonic_ns();
      bye_ = bye_ || message->type == Type::kBye;
    }
    if (!open && !bye_) lose_launcher(kConnectionLost);
    if (!bye_) expect_launcher();
  }
}

// The launcher hangs up when it has read everything. If we did first, with its mail unread, our
// system would take back what it has not sent.
void Reactor::leave() {
  const int64_t deadline_ns = deadline_after(kLeaveS);
  control_.drain(kLeaveS);
  shutdown(control_.fd(), SHUT_WR);
  while (monotonic_ns() < deadline_ns && control_.fill()) {
    while (next_mail()) {
    }
    pollfd launcher{control_.fd(), POLLIN, 0};
    poll(&launcher, 1, static_cast<int>(kPingNs / kMillisecondNs));
  }
}

void Reactor::sleep(double seconds) {
  const int64_t deadline_ns = deadline_after(seconds);
  while (true) {
    progress();
    check_stop();
    const int64_t left_ns = deadline_ns - monotonic_ns();
    if (left_ns <= 0) return;
    if (left_ns < kMillisecondNs) {  // finer than epoll can wait, too short to be missed
      const timespec left{0, left_ns};
      nanosleep(&left, nullptr);
      continue;
    }
    board_.fall_asleep(rank_);
    if (may_sleep()) block(deadline_ns);
    board_.wake_up(rank_);
  }
}

Reactor::Pause Reactor::yield(int64_t& idle_since_ns, Deadline& deadline) {
  const int64_t now_ns = monotonic_ns();
  // A node that was stopped, for example by Ctrl-Z, was not waiting for its peers meanwhile.
  const int64_t missed_ns = now_ns - std::exchange(deadline.looked_ns, now_ns);
  if (missed_ns > kStoppedNs) deadline.at_ns += missed_ns;
  const int64_t deadline_ns = deadline.at_ns;
  if (now_ns >= deadline_ns) return Pause::kOver;
  if (idle_since_ns == 0) idle_since_ns = now_ns;
  const int64_t idle_ns = now_ns - idle_since_ns;
  if (idle_ns < kYieldNs || deadline_ns - now_ns < kMillisecondNs) {
    placement_.consider(now_ns);
    if (spins_ > 0 && idle_ns < kSpinNs)
      __builtin_ia32_pause();
    else
      sched_yield();
    return Pause::kYielded;
  }
  idle_since_ns = 0;
  return Pause::kSleep;
}

bool Reactor::may_sleep() {
  return transport_->arm() && !transport_->offers_taken() && !has_mail();
}

void Reactor::block(int64_t deadline_ns) {
  int64_t left_ms = (deadline_ns - monotonic_ns()) / kMillisecondNs;
  if (joined_) left_ms = std::min(left_ms, kPingNs / kMillisecondNs);
  std::array<epoll_event, 16> events;
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                               static_cast<int>(std::clamp<int64_t>(left_ms, 0, kLongestSleepMs)));
  for (int i = 0; i < count; ++i) {
    const int fd = events[static_cast<size_t>(i)].data.fd;
    if (fd == board_.bell(rank_)) board_.silence(rank_);
    if (fd == control_.fd()) mail_left_ = true;
  }
}

std::optional<ControlMessage> Reactor::next_mail() {
  try {
    return control_.next();
  } catch (const DataError& error) {
    lose_launcher(std::string(kNonsense) + error.what());
  }
}

// Not by an exception: mail is read in destructors, too, while a strategy unwinds, and after a
// frame that cannot be there is nothing to go on with.
void Reactor::read_mail() {
  news_seen_ = board_.news().load(std::memory_order_acquire);
  const bool open = control_.fill();
  mail_left_ = control_.more();
  while (const auto message = next_mail()) {
    heard_ns_ = monotonic_ns();
    try {
      check(*message);
      handle(*message);
    } catch (const DataError& error) {
      lose_launcher(std::string(kNonsense) + error.what());
    }
    // Who waits must notice a loss even if the peer is back by now: look before reading on.
    if (message->type == Type::kLost) {
      mail_left_ = true;
      return;
    }
  }
  if (!open && !bye_) lose_launcher(kConnectionLost);
}

void Reactor::listen() {
  const int64_t now_ns = monotonic_ns();
  next_look_ns_ = now_ns + kLookNs;
  mail_left_ = true;
  if (now_ns < next_ping_ns_) return;
  next_ping_ns_ = now_ns + kPingNs;
  control_.post({Type::kPing, rank_, incarnation_, board_.steps(rank_).load(), {}});
}

// Without its launcher a node has no peers and no purpose; a forked one is normally dead by now.
void Reactor::lose_launcher(const std::string& how) {
  if (!joined_ && how == kConnectionLost) _exit(kExitInternal);
  std::fprintf(stderr, "tutti: rank %d: %s\n", rank_, printable(how).c_str());
  std::fflush(nullptr);
  _exit(joined_ ? kExitPeerLost : kExitInternal);
}

void Reactor::read_all_mail() {
  look();
  while (has_mail()) read_mail();
}

// What the launcher may say when, and of whom.
void Reactor::check(const ControlMessage& message) const {
  const bool known = message.rank >= 0 && message.rank < board_.nodes();
  const bool other = known && message.rank != rank_;
  switch (message.type) {
    case Type::kWelcome:
      if (welcome_) throw DataError("a second welcome");
      return;
    case Type::kAddress:
    case Type::kLost:
    case Type::kJoined:
      if (!welcome_) throw DataError("news of a node before the welcome");
      if (message.rank == kAnyRank) throw DataError("news of nobody");
      if (!other) throw DataError(fmt::format("news of rank {}, who is no peer", message.rank));
      break;
    case Type::kWindow:
      if (!welcome_ || !known || !neighbourhood_.one_host())
        throw DataError(fmt::format("a window of rank {}, who can share none", message.rank));
      return;
    case Type::kStart:
      if (message.number > kMostElapsedNs) throw DataError("a start decades ago");
      return;
    default:
      return;
  }
  const Member& member = membership_->known(message.rank);
  if (message.type == Type::kLost && (!member.alive || member.incarnation != message.incarnation))
    throw DataError(fmt::format("the loss of rank {}, who was not there", message.rank));
  if (message.type == Type::kJoined && (member.alive || member.incarnation > message.incarnation))
    throw DataError(fmt::format("the return of rank {}, who was not lost", message.rank));
}

void Reactor::welcome(const ControlMessage& message) {
  std::vector<Member> members = decode_roster(message.body);
  if (members.size() != static_cast<size_t>(board_.nodes()))
    throw DataError("a roster of another size");
  if (members[static_cast<size_t>(rank_)] != Member{true, incarnation_})
    throw DataError("a roster without this node");
  losses_ = static_cast<uint32_t>(message.number);
  transport_ = std::make_unique<Transport>(
      board_, rank_, neighbourhood_,
      [this](Rank to, const std::string& address) {
        control_.post({Type::kAddress, to, incarnation_, membership_->known(to).incarnation,
                       seal_address(address)});
        send_queued();
      },
      [this](int fd, bool on) { watch_fd(epoll_.get(), fd, on); });
  for (size_t rank = 0; rank < members.size(); ++rank) {
    transport_->join(static_cast<Rank>(rank), members[rank].incarnation);
    if (!members[rank].alive) transport_->lose(static_cast<Rank>(rank));
  }
  membership_ =
      std::make_unique<ProcessMembership>(std::move(members), [this] { read_all_mail(); });
  welcome_ = true;
}

void Reactor::handle(const ControlMessage& message) {
  switch (message.type) {
    case Type::kWelcome:
      welcome(message);
      break;
    case Type::kAddress:
      transport_->on_address(message.rank, message.incarnation, open_address(message.body));
      break;
    case Type::kLost:
      ++losses_;
      for (auto& offers : windows_) offers.clear();
      membership_->lose(message.rank);
      transport_->lose(message.rank);
      break;
    case Type::kJoined:
      transport_->join(message.rank, message.incarnation);
      membership_->join(message.rank, message.incarnation);
      break;
    case Type::kWindow:
      windows_of(message.rank).push_back({control_.take_descriptor(), message.number});
      break;
    case Type::kStart:
      if (joined_) board_.set_start_ns(monotonic_ns() - static_cast<int64_t>(message.number));
      start_ = true;
      break;
    case Type::kBye:
      bye_ = true;
      break;
    case Type::kStop:
      board_.stop().store(1);  // the launcher's board says so already; this wakes
      break;
    case Type::kPing:
      break;
    case Type::kRefused:
      lose_launcher("the run does not take place: " + message.body);
    case Type::kHello:
    case Type::kReady:
    case Type::kResult:
    case Type::kJoin:
    case Type::kAccepted:
      throw DataError("a message that only nodes send");
  }
}

}  // namespace tutti::process
