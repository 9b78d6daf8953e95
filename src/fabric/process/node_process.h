// The process of a forked node, as its launcher holds it: seen to end through its pidfd, and never
// left behind.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "fabric/process/control_socket.h"

namespace tutti::process {

class NodeProcess {
 public:
  NodeProcess() = default;
  ~NodeProcess();  // kills it, if it is left
  NodeProcess(const NodeProcess&) = delete;
  NodeProcess& operator=(const NodeProcess&) = delete;

  // Forks. `body` is what the new process does; it must not return.
  void start(const std::function<void()>& body);
  bool running() const { return pid_ != 0; }
  int pidfd() const { return pidfd_.get(); }  // readable when it has ended; -1: not running
  void kill();
  // Returns how it ended, once it has, and forgets it: another may be started then.
  std::optional<std::string> reap();
  // Tells whether somebody stopped it, for example by Ctrl-Z.
  bool stopped() const;
  // Lets go of it in a process that was forked since.
  void disown() { pidfd_.reset(); }

 private:
  pid_t pid_ = 0;
  FileDescriptor pidfd_;
};

}  // namespace tutti::process
