#include "fabric/virtual/isolated_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

#include "core/error.h"

namespace tutti::simulation {
namespace {

constexpr int kStopPoll_ms = 20;

// The only word that the parent says to the child.
class SharedFlag {
 public:
  SharedFlag() {
    void* page = mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) throw Error("no memory for a simulation");
    flag_ = new (page) std::atomic<bool>(false);
  }
  ~SharedFlag() { munmap(flag_, sizeof(std::atomic<bool>)); }
  SharedFlag(const SharedFlag&) = delete;
  SharedFlag& operator=(const SharedFlag&) = delete;
  std::atomic<bool>& operator*() const { return *flag_; }

 private:
  std::atomic<bool>* flag_;
};

void write_all(int fd, const std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written = write(fd, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) _exit(1);  // the parent is gone
    done += static_cast<size_t>(written);
  }
}

// The first byte says whether a result or an error follows.
constexpr char kResult = 'r';
constexpr char kError = 'e';

[[noreturn]] void be_child(const std::function<std::string()>& work, int fd, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before the line above
  std::string reply;
  try {
    reply = kResult + work();
  } catch (const std::exception& error) {
    reply = kError + std::string(error.what());
  }
  write_all(fd, reply);
  std::fflush(nullptr);
  _exit(0);  // the parent's static objects are not the child's to destroy
}

std::string read_reply(int fd, const std::atomic<bool>& stop, std::atomic<bool>& child_stop) {
  std::string reply;
  char buffer[1 << 16];
  while (true) {
    if (stop) child_stop = true;
    pollfd entry{fd, POLLIN, 0};
    if (poll(&entry, 1, kStopPoll_ms) <= 0) continue;
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return reply;
    reply.append(buffer, static_cast<size_t>(got));
  }
}

}  // namespace

std::string run_isolated(const std::function<std::string(const std::function<bool()>&)>& work,
                         const std::atomic<bool>& stop) {
  SharedFlag child_stop;
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0)
    throw Error(fmt::format("cannot start a simulation: {}", std::strerror(errno)));
  std::fflush(nullptr);  // or the child would print the parent's buffered text again
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) {
    close(fds[0]);
    close(fds[1]);
    throw Error(fmt::format("cannot start a simulation: {}", std::strerror(errno)));
  }
  if (child == 0) {
    close(fds[0]);
    // Ctrl-C reaches the whole process group: then the child's own copy of `stop` is raised.
    const auto stopped = [&] {
      return stop.load(std::memory_order_relaxed) || (*child_stop).load(std::memory_order_relaxed);
    };
    be_child([&] { return work(stopped); }, fds[1], parent);
  }
  close(fds[1]);
  std::string reply = read_reply(fds[0], stop, *child_stop);
  close(fds[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!reply.empty() && reply[0] == kResult && WIFEXITED(status)) return reply.substr(1);
  if (!reply.empty() && reply[0] == kError) throw Error("simulation failed: " + reply.substr(1));
  throw Error(WIFSIGNALED(status) ? fmt::format("the simulation died from signal {} ({})",
                                                WTERMSIG(status), strsignal(WTERMSIG(status)))
                                  : "the simulation ended without a result");
}

}  // namespace tutti::simulation
