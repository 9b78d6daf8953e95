#include "core/isolated_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <list>
#include <new>

#include "core/error.h"

namespace tutti {
namespace {

constexpr int kStopPoll_ms = 20;

// The only word that the parent says to its children.
class SharedFlag {
 public:
  SharedFlag() {
    void* page = mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) throw Error("no memory for a child process");
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

// The first byte says what follows.
constexpr char kResult = 'r';
constexpr char kError = 'e';
constexpr char kInterrupted = 'i';

[[noreturn]] void be_child(const IsolatedWork& work, const std::atomic<bool>& stop, int fd,
                           pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before the line above
  std::string reply;
  try {
    reply = kResult + work(stop);
  } catch (const InterruptedError&) {
    reply = kInterrupted;
  } catch (const std::exception& error) {
    reply = kError + std::string(error.what());
  }
  write_all(fd, reply);
  std::fflush(nullptr);
  _exit(0);  // the parent's static objects are not the child's to destroy
}

class Child {
 public:
  Child(size_t index, const std::string& what, const IsolatedWork& work,
        const std::atomic<bool>& stop)
      : index_(index) {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0)
      throw Error(fmt::format("cannot start a {}: {}", what, std::strerror(errno)));
    std::fflush(nullptr);  // or the child would print the parent's buffered text again
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ == 0) {
      close(fds[0]);
      be_child(work, stop, fds[1], parent);
    }
    close(fds[1]);
    fd_ = fds[0];
    if (pid_ < 0) {
      close(fd_);
      throw Error(fmt::format("cannot start a {}: {}", what, std::strerror(errno)));
    }
  }
  ~Child() {
    close(fd_);
    if (!ended_) kill(pid_, SIGKILL);
    if (!ended_) reap();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  size_t index() const { return index_; }
  int fd() const { return fd_; }

  // Reads what there is; true once the child has said everything.
  bool read_some() {
    char buffer[1 << 16];
    const ssize_t got = read(fd_, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) return false;
    if (got > 0) reply_.append(buffer, static_cast<size_t>(got));
    return got <= 0;
  }

  std::string result(const std::string& what) {
    const int status = reap();
    const char kind = reply_.empty() ? '\0' : reply_[0];
    if (kind == kResult && WIFEXITED(status)) return reply_.substr(1);
    if (kind == kInterrupted) throw InterruptedError();
    if (kind == kError) throw Error(fmt::format("{} failed: {}", what, reply_.substr(1)));
    throw Error(WIFSIGNALED(status) ? fmt::format("the {} died from signal {} ({})", what,
                                                  WTERMSIG(status), strsignal(WTERMSIG(status)))
                                    : fmt::format("the {} ended without a result", what));
  }

 private:
  int reap() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    ended_ = true;
    return status;
  }

  size_t index_;
  pid_t pid_ = 0;
  int fd_ = -1;
  bool ended_ = false;
  std::string reply_;
};

void run_some(const std::string& what, const WorkQueue& queue, size_t at_once,
              const std::atomic<bool>& stop) {
  const SharedFlag child_stop;
  std::list<Child> children;
  size_t begun = 0;
  while (queue.goes_on()) {
    if (stop) *child_stop = true;
    if (children.size() < at_once)
      if (const std::optional<IsolatedWork> work = queue.next()) {
        children.emplace_back(begun++, what, *work, *child_stop);
        continue;
      }
    if (children.empty()) return;
    std::vector<pollfd> waiting;
    for (const Child& child : children) waiting.push_back({child.fd(), POLLIN, 0});
    if (poll(waiting.data(), waiting.size(), kStopPoll_ms) <= 0) continue;
    size_t i = 0;
    for (auto child = children.begin(); child != children.end(); ++i) {
      if (waiting[i].revents == 0 || !child->read_some()) {
        ++child;
        continue;
      }
      std::string result = child->result(what);
      const size_t index = child->index();
      child = children.erase(child);
      queue.ended(index, std::move(result));
    }
  }
}

std::vector<std::string> run_all(const std::string& what, const std::vector<IsolatedWork>& works,
                                 size_t at_once, const std::function<void(size_t)>& begun,
                                 const std::atomic<bool>& stop) {
  std::vector<std::string> results(works.size());
  size_t next = 0;
  const WorkQueue queue{
      .next = [&]() -> std::optional<IsolatedWork> {
        if (next == works.size()) return std::nullopt;
        begun(next);
        return works[next++];
      },
      .ended = [&](size_t i, std::string result) { results[i] = std::move(result); },
      .goes_on = [] { return true; }};
  run_some(what, queue, at_once, stop);
  return results;
}

size_t cores() { return static_cast<size_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN))); }

}  // namespace

std::string run_isolated(const std::string& what, const IsolatedWork& work,
                         const std::atomic<bool>& stop) {
  return run_all(
             what, {work}, 1, [](size_t) {}, stop)
      .front();
}

std::vector<std::string> run_side_by_side(const std::string& what,
                                          const std::vector<IsolatedWork>& works,
                                          const std::function<void(size_t)>& begun,
                                          const std::atomic<bool>& stop) {
  return run_all(what, works, cores(), begun, stop);
}

void run_queue(const std::string& what, const WorkQueue& queue, const std::atomic<bool>& stop) {
  run_some(what, queue, cores(), stop);
}

}  // namespace tutti
