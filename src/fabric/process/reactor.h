// The reactor: what every call of a node that waits does meanwhile. It moves messages, reads the
// launcher's mail, and waits without wasting the machine: it looks again at once for a moment, then
// yields the core to its neighbours (which is what lets eight nodes share two cores), then blocks.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "fabric/process/asymmetric_fence.h"
#include "fabric/process/board.h"
#include "fabric/process/control_socket.h"
#include "fabric/process/neighbourhood.h"
#include "fabric/process/placement.h"
#include "fabric/process/process_clock.h"
#include "fabric/process/process_membership.h"
#include "fabric/process/transport.h"

namespace tutti::process {

// What a node knows before it has met anybody.
struct NodeSetup {
  Rank rank = 0;
  uint32_t incarnation = 0;
  const std::vector<std::string>* roles = nullptr;
  double timeout_s = 120;
  Neighbourhood neighbourhood;
  const std::atomic<bool>* stop = nullptr;  // of a node that joined: its own user's wish
};

// A window that its owner has announced: memory to map.
struct WindowOffer {
  FileDescriptor memory;
  uint64_t bytes = 0;
};

class Reactor {
 public:
  // Says hello and waits for the launcher's welcome. Throws InterruptedError if its own user does
  // not want it any more.
  Reactor(const NodeSetup& setup, Board& board, ControlSocket control);
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;

  Board& board() { return board_; }
  const AsymmetricFence& fence() const { return fence_; }
  const Neighbourhood& neighbourhood() const { return neighbourhood_; }
  Rank rank() const { return rank_; }
  Transport& transport() { return *transport_; }
  ProcessMembership& membership() { return *membership_; }

  // Connects to all peers (few) or to none yet (many), and waits for the launcher's start. Throws
  // InterruptedError and FabricError.
  void get_ready(double timeout_s);
  std::string unconnected() const;  // who, for an error
  void announce_window(std::shared_ptr<FileDescriptor> memory, uint64_t bytes);
  std::deque<WindowOffer>& windows_of(Rank rank) { return windows_[static_cast<size_t>(rank)]; }
  // Sends the outcome, then stays until the launcher lets it go; serves its peers if it may. A user
  // of its own need not wait for that: then it goes, by InterruptedError if it was needed.
  void report(const NodeOutcome& outcome);

  // One round: messages and mail.
  void progress() {
    transport_->progress();
    look();
  }
  // Only what the launcher has said, for calls that do not wait.
  void look() {
    if (joined_ && monotonic_ns() >= next_look_ns_) listen();
    if (has_mail()) read_mail();
  }
  void check_stop() {
    if (joined_) look();
    if (stopping()) throw InterruptedError();
  }
  bool stopping() { return board_.stop().load(std::memory_order_relaxed) != 0 || own_user_stops(); }
  bool own_user_stops() const { return stop_ && stop_->load(); }

  // Makes progress until `done()`; false when the time is over. Throws InterruptedError.
  template <class Done>
  bool until(Done done, double timeout_s) {
    check_stop();
    return pass_time(done, timeout_s, true);
  }
  // The same for what must be brought to an end even if the node should stop.
  template <class Done>
  bool until_uninterrupted(Done done, double timeout_s) {
    return pass_time(done, timeout_s, false);
  }

  // Passes the time without looking around, but serves peers who ask for something. Throws too.
  void sleep(double seconds);

  // How often to look again before yielding: not at all when there are more nodes than cores.
  int spins() const { return spins_; }

 private:
  template <class Done>
  bool pass_time(Done done, double timeout_s, bool interruptible);
  enum class Pause { kOver, kYielded, kSleep };
  struct Deadline {
    int64_t at_ns;
    int64_t looked_ns;  // when the waiting node last read the clock
  };
  // Yields, unless nothing has happened for so long that the node should sleep. Extends the
  // deadline by the time for which the node was stopped.
  Pause yield(int64_t& idle_since_ns, Deadline& deadline);
  // True when every source of events will wake a sleeper, and none has something already.
  bool may_sleep();
  void block(int64_t deadline_ns);

  bool has_mail() {
    return mail_left_ || board_.news().load(std::memory_order_acquire) != news_seen_;
  }
  void read_mail();
  void read_all_mail();
  void listen();  // to a launcher elsewhere, and lets it know that we are there
  void send_queued();
  void await_bye();
  void expect_launcher();
  void leave();
  [[noreturn]] void lose_launcher(const std::string& how);
  std::optional<ControlMessage> next_mail();
  // These throw DataError: a launcher is believed no more than a node is.
  void check(const ControlMessage& message) const;
  void handle(const ControlMessage& message);
  void welcome(const ControlMessage& message);

  Board& board_;
  AsymmetricFence fence_;
  ControlSocket control_;
  Rank rank_;
  uint32_t incarnation_;
  const Neighbourhood& neighbourhood_;
  const std::atomic<bool>* stop_;
  double timeout_s_;
  bool joined_;  // the launcher is elsewhere: the board is not its, only the connection is
  int64_t next_look_ns_ = 0;
  int64_t next_ping_ns_ = 0;
  int64_t heard_ns_ = 0;  // when the launcher last said something
  Placement placement_;
  FileDescriptor epoll_;
  std::unique_ptr<ProcessMembership> membership_;
  std::unique_ptr<Transport> transport_;
  std::vector<std::deque<WindowOffer>> windows_;
  uint32_t losses_ = 0;
  uint32_t news_seen_ = 0;
  bool mail_left_ = false;
  bool welcome_ = false;
  bool start_ = false;
  bool bye_ = false;
  int spins_ = 0;
};

template <class Done>
bool Reactor::pass_time(Done done, double timeout_s, bool interruptible) {
  progress();
  if (done()) return true;
  if (timeout_s <= 0) return false;
  Deadline deadline{deadline_after(timeout_s), monotonic_ns()};
  int64_t idle_since_ns = 0;
  for (int round = 0;; ++round) {
    progress();
    if (done()) return true;
    if (interruptible) check_stop();
    if (round < spins_) {
      __builtin_ia32_pause();
      continue;
    }
    const Pause pause = yield(idle_since_ns, deadline);
    if (pause == Pause::kOver) return false;
    if (pause == Pause::kYielded) continue;
    // Whoever changes something after this rings; whoever did before is seen by the second look.
    board_.fall_asleep(rank_);
    const bool fenced = fence_.heavy();
    if (!done() && fenced && may_sleep()) block(deadline.at_ns);
    board_.wake_up(rank_);
  }
}

}  // namespace tutti::process
