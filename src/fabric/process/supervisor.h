// The launcher's side of a run: forks the nodes, watches them, passes their messages on, and tells
// everybody of every loss in the same order.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/process/board.h"
#include "fabric/process/control_socket.h"
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
    pid_t pid = 0;  // 0: not running
    FileDescriptor pidfd;
    std::unique_ptr<ControlSocket> control;
    uint32_t incarnation = 0;
    bool greeted = false;  // its hello came: peers know it
    bool ready = false;
    bool ended = false;  // its outcome is settled
    bool lost = false;   // peers were told so, and not that it is back
    NodeOutcome outcome;
    int restarts_left = 0;
    std::vector<ControlMessage> early;  // for it, from peers who were faster to say hello
    struct Announced {
      std::shared_ptr<FileDescriptor> memory;
      uint64_t bytes = 0;
    };
    std::vector<Announced> windows;  // that not all others have opened too
  };
  using Message = ControlMessage;

  Child& child(Rank rank) { return children_[static_cast<size_t>(rank)]; }
  int size() const { return static_cast<int>(children_.size()); }

  void start(Rank rank);
  void supervise();  // one round: waits for something to happen, at most a little while
  void listen(Rank rank);
  void handle(Rank rank, const Message& message);
  void greet(Rank rank);
  void forward_window(Rank rank, const Message& message);
  void settle(Rank rank, NodeOutcome outcome);
  void bury(Rank rank);
  void start_when_ready();
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
  uint32_t losses_ = 0;
  bool started_ = false;
  bool stopping_ = false;
  int64_t kill_at_ns_ = 0;
  double startup_s_ = 0;
};

}  // namespace tutti::process
