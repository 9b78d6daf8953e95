// The launcher's side of a run: forks the nodes and lets in those who join, watches them, passes
// their messages on, and tells everybody of every loss in the same order.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/process/board.h"
#include "fabric/process/control_socket.h"
#include "fabric/process/lobby.h"
#include "fabric/process/neighbourhood.h"
#include "fabric/process/process_fabric.h"

namespace tutti::process {

class Supervisor {
 public:
  Supervisor(const std::vector<std::string>& roles, const ProcessOptions& options,
             const Fabric::Body& body, const std::atomic<bool>& stop);
  ~Supervisor();  // kills whatever is left
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  std::vector<NodeOutcome> run();
  double startup_s() const { return startup_s_; }

 private:
  struct Child {
    pid_t pid = 0;  // of a forked one; 0: not running
    FileDescriptor pidfd;
    bool joins = false;            // from elsewhere; it lives as long as its connection
    std::string origin;            // where it is
    int unanswered = 0;            // pings since it last said something
    int64_t heard_ns = 0;          // when it last said something, or was seen to run; 0: not yet
    uint64_t steps = 0;            // steps that a guest had begun by then
    int64_t awaited_until_ns = 0;  // its place is free until then; 0: taken, or not to be taken
    std::string cut_off_for;       // why the launcher killed it
    std::unique_ptr<ControlSocket> control;
    uint32_t incarnation = 0;
    bool greeted = false;  // its hello came: peers know it
    bool ready = false;
    bool ended = false;  // its outcome is settled
    bool lost = false;   // peers were told so, and not that it is back
    uint32_t lost_incarnation = 0;
    uint32_t lost_as = 0;  // which loss of the run it was, counted from 1
    NodeOutcome outcome;
    int restarts_left = 0;
    // Addresses for it, from peers who were faster to say hello: one of each at most, since in
    // `announced_to` is noted which incarnation of whom it has let know its own.
    std::vector<ControlMessage> early;
    std::map<Rank, uint32_t> announced_to;
  };
  using Message = ControlMessage;

  Child& child(Rank rank) { return children_[static_cast<size_t>(rank)]; }
  int size() const { return static_cast<int>(children_.size()); }

  bool running(const Child& child) const {
    return child.pid != 0 || (child.joins && child.control && child.control->fd() >= 0);
  }
  void start(Rank rank);
  void kill(Child& child);
  void cut_off(Rank rank, const std::string& why);  // one that does not do as it should

  // Nodes elsewhere (supervisor_joined.cpp).
  bool gather();  // waits for them; false: not all came
  void admit(Lobby::Guest guest);
  void accept(Rank rank);
  void serve_lobby();
  void ping();
  void part(Rank rank, const std::string& why);
  void wait_for(Rank rank, int64_t until_ns);  // somebody may take its place
  std::vector<NodeOutcome> nobody_came();

  // These handle nodes that are there but do nothing (supervisor_silence.cpp).
  void check_silence();
  std::string last_step(Rank rank);

  void supervise();  // one round: waits for something to happen, at most a little while
  void listen(Rank rank);
  void handle(Rank rank, const Message& message);
  void check(Rank rank, const Message& message);  // throws DataError, as handle() does
  void greet(Rank rank);
  void forward_address(Rank rank, const Message& message);
  void forward_window(Rank rank, const Message& message);
  void settle(Rank rank, NodeOutcome outcome);
  void bury(Rank rank);
  void end_or_restart(Rank rank, const std::string& how);
  void start_when_ready();
  void give_start(Rank rank);
  void check_stop();
  void check_startup();
  bool all_ended() const;
  void dismiss();

  void tell(Rank rank, const Message& message, std::shared_ptr<FileDescriptor> attached = nullptr);
  void tell_others(Rank about, const Message& message,
                   const std::shared_ptr<FileDescriptor>& attached = nullptr);
  void tell_lost(Rank rank);

  const std::vector<std::string>& roles_;
  ProcessOptions options_;
  const Fabric::Body& body_;
  const std::atomic<bool>& stop_;
  Board board_;
  std::vector<Child> children_;
  Neighbourhood neighbourhood_;
  std::optional<Lobby> lobby_;  // only when some join
  int64_t next_ping_ns_ = 0;
  bool gathered_ = false;  // those who join have come
  uint32_t losses_ = 0;
  int64_t looked_ns_ = 0;  // when silence was last checked
  bool gave_up_ = false;   // some node waited in vain until its deadline
  bool started_ = false;
  bool stopping_ = false;
  int64_t kill_at_ns_ = 0;
  double startup_s_ = 0;
};

}  // namespace tutti::process
