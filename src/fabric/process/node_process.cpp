#include "fabric/process/node_process.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "core/error.h"
#include "fabric/process/lifeline.h"

namespace tutti::process {
namespace {

std::string describe_death(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return fmt::format("exited with code {}", info.si_status);
  return fmt::format("was killed by signal {} ({})", info.si_status, strsignal(info.si_status));
}

}  // namespace

NodeProcess::~NodeProcess() {
  if (pid_ == 0) return;
  kill();
  waitpid(pid_, nullptr, 0);
  sweep_segments_of(pid_);
}

void NodeProcess::start(const std::function<void()>& body) {
  TUTTI_CHECK(pid_ == 0);
  std::fflush(nullptr);  // or the child would write our buffers a second time
  const pid_t launcher = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw Error(std::string("cannot start a node: ") + std::strerror(errno));
  if (pid == 0) {
    die_with(launcher);
    signal(SIGINT, SIG_IGN);  // the launcher hears of it and tells the nodes to stop
    signal(SIGTERM, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    body();
    std::abort();
  }
  pid_ = pid;
  pidfd_ = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (pidfd_.get() < 0) throw Error(std::string("cannot watch a node: ") + std::strerror(errno));
}

void NodeProcess::kill() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
}

std::optional<std::string> NodeProcess::reap() {
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0)
    return std::nullopt;
  sweep_segments_of(pid_);
  pid_ = 0;
  pidfd_.reset();
  return describe_death(info);
}

// In /proc/PID/stat the state follows the name, which is in parentheses and may hold anything.
bool NodeProcess::stopped() const {
  std::ifstream file(fmt::format("/proc/{}/stat", pid_));
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return false;
  return text[name_end + 2] == 'T' || text[name_end + 2] == 't';
}

}  // namespace tutti::process
