// Other programs that the benchmarks run: the peers, and this one.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <list>
#include <thread>

#include "cli/bench.h"
#include "core/error.h"

namespace tutti {
namespace {

constexpr int kLookAtStop_ms = 20;
constexpr double kMayEnd_s = 5;  // a command that is asked to; tutti and mpirun clean up first

// A command whose standard output is read. It has a group of its own, so that all that it starts
// can be ended with it; a terminal's Ctrl-C reaches this program alone, which passes it on.
class RunningCommand {
 public:
  explicit RunningCommand(Words words) {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) fail(words[0]);
    std::fflush(nullptr);  // or the child would print buffered text again
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ == 0) be(argv, ends[1], parent);
    const int reason = errno;
    close(ends[1]);
    output_ = ends[0];
    if (pid_ > 0) {
      setpgid(pid_, pid_);  // both sides do it: whoever comes first
      end_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
      return;
    }
    close(output_);
    errno = reason;
    fail(words[0]);
  }
  ~RunningCommand() {
    close(output_);
    close(end_);
    if (ended_) return;
    kill(-pid_, SIGTERM);
    for (int i = 0; i < kMayEnd_s * 1000 / kLookAtStop_ms && !reaped(WNOHANG); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(kLookAtStop_ms));
    kill(-pid_, SIGKILL);  // also what it left behind
    if (!ended_) reaped(0);
  }
  RunningCommand(const RunningCommand&) = delete;
  RunningCommand& operator=(const RunningCommand&) = delete;

  // Reads what there is, and waits for it no longer than a moment; true once nothing will come.
  bool read_some() {
    if (!ready(output_)) return false;
    char block[1 << 14];
    const ssize_t got = read(output_, block, sizeof block);
    if (got < 0 && errno == EINTR) return false;
    if (got > 0) text_.append(block, static_cast<size_t>(got));
    return got <= 0;
  }

  // Waits for its end no longer than a moment either.
  bool gone() { return ended_ || (ready(end_) && reaped(WNOHANG)); }
  std::string text() const { return status_ == 0 ? text_ : ""; }
  double peak_bytes() const { return static_cast<double>(usage_.ru_maxrss) * 1024; }
  double cpu_s() const {
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    return seconds(usage_.ru_utime) + seconds(usage_.ru_stime);
  }

 private:
  static bool ready(int fd) {
    pollfd waiting{fd, POLLIN, 0};
    return poll(&waiting, 1, kLookAtStop_ms) > 0;
  }

  [[noreturn]] static void be(const std::vector<char*>& argv, int output, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);  // it died before the line above
    setpgid(0, 0);
    signal(SIGPIPE, SIG_DFL);  // the others' own; being ignored would be inherited
    dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    execvp(argv[0], argv.data());
    _exit(127);
  }

  [[noreturn]] static void fail(const std::string& program) {
    throw Error(fmt::format("{}: cannot be started: {}", program, std::strerror(errno)));
  }

  bool reaped(int flags) {
    pid_t got;
    while ((got = wait4(pid_, &status_, flags, &usage_)) < 0 && errno == EINTR) {
    }
    return ended_ = got == pid_;
  }

  pid_t pid_ = 0;
  int output_ = -1;
  int end_ = -1;  // its pidfd
  int status_ = -1;
  rusage usage_{};  // with that of its own children
  bool ended_ = false;
  std::string text_;
};

}  // namespace

namespace {

std::vector<CommandOutput> run_at_once(const std::vector<Words>& commands,
                                       const std::atomic<bool>& stop) {
  std::list<RunningCommand> running;
  for (const Words& words : commands) running.emplace_back(words);
  std::vector<CommandOutput> outputs;
  for (RunningCommand& command : running) {  // the others' pipes are read in turn: they say little
    while (!command.read_some()) leave_if_stopped(stop);
    while (!command.gone()) leave_if_stopped(stop);
    outputs.push_back({command.text(), command.peak_bytes(), command.cpu_s()});
  }
  leave_if_stopped(stop);  // it may have heard of it before this program did
  return outputs;
}

}  // namespace

std::vector<std::string> outputs_of(const std::vector<Words>& commands,
                                    const std::atomic<bool>& stop) {
  std::vector<std::string> texts;
  for (CommandOutput& output : run_at_once(commands, stop)) texts.push_back(std::move(output.text));
  return texts;
}

std::string output_of(const Words& command, const std::atomic<bool>& stop) {
  return measured_output_of(command, stop).text;
}

CommandOutput measured_output_of(const Words& command, const std::atomic<bool>& stop) {
  return std::move(run_at_once({command}, stop).front());
}

}  // namespace tutti
