// Running the program from a test: start it without a shell, watch it, signal it, and look at what
// it printed, how it ended and what it left behind.
//
// TUTTI_PROGRAM, the path of the program, comes from the build.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace tutti::testing_support {

using Arguments = std::vector<std::string>;

struct Ended {
  int exit_code = -1;  // -1 when it was ended by a signal
  int signal = 0;
  bool late = false;  // it was still running at the deadline, and was killed
  std::string out, err;
};

struct SubprocessOptions {
  std::string folder = {};                    // working directory; empty: that of the test
  std::vector<std::string> environment = {};  // "NAME=value", added to that of the test
  int out = -1;                               // standard output goes to this descriptor instead
  int err = -1;                               // standard error
  rlim_t file_size = RLIM_INFINITY;           // a longer file fails as on a full disk
  rlim_t address_space = RLIM_INFINITY;       // more memory cannot be had
  rlim_t open_files = RLIM_INFINITY;          // nor more files at a time
  std::string program = TUTTI_PROGRAM;        // what is run
};

// Polls until `condition` holds; false when it does not within `seconds`.
inline bool eventually(const std::function<bool()>& condition, double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

class Subprocess {
 public:
  explicit Subprocess(const Arguments& arguments, const SubprocessOptions& options = {})
      : out_(memfd_create("out", MFD_CLOEXEC)), err_(memfd_create("err", MFD_CLOEXEC)) {
    std::vector<std::string> words = {options.program};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    std::fflush(nullptr);
    const pid_t test = getpid();
    pid_ = fork();
    if (pid_ == 0) exec(argv, options, test);
    setpgid(pid_, pid_);  // both sides do it: whoever comes first
  }
  ~Subprocess() {
    if (!reaped_) {
      kill(-pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(out_);
    close(err_);
  }
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const { kill(pid_, number); }
  void signal_group(int number) const { kill(-pid_, number); }  // as a terminal does
  std::string out() const { return content(out_); }             // so far
  std::string err() const { return content(err_); }

  Ended wait(double deadline_s = 60) {
    int status = 0;
    const auto gone = [&] { return waitpid(pid_, &status, WNOHANG) == pid_; };
    Ended ended;
    if (!eventually(gone, deadline_s)) {
      ended.late = true;
      kill(-pid_, SIGKILL);
      waitpid(pid_, &status, 0);
    }
    reaped_ = true;
    if (WIFEXITED(status)) ended.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
    ended.out = out();
    ended.err = err();
    return ended;
  }

 private:
  [[noreturn]] void exec(std::vector<char*>& argv, const SubprocessOptions& options, pid_t test) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != test) _exit(127);
    setpgid(0, 0);
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(nothing, STDIN_FILENO);
    dup2(options.out >= 0 ? options.out : out_, STDOUT_FILENO);
    dup2(options.err >= 0 ? options.err : err_, STDERR_FILENO);
    if (!options.folder.empty() && chdir(options.folder.c_str()) != 0) _exit(127);
    for (const std::string& entry : options.environment) {
      const size_t equals = entry.find('=');
      setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
    }
    if (options.file_size != RLIM_INFINITY) {
      ::signal(SIGXFSZ, SIG_IGN);  // so that a write fails instead
      const rlimit limit{options.file_size, options.file_size};
      setrlimit(RLIMIT_FSIZE, &limit);
    }
    const rlimit space{options.address_space, options.address_space};
    if (options.address_space != RLIM_INFINITY) setrlimit(RLIMIT_AS, &space);
    const rlimit files{options.open_files, options.open_files};
    if (options.open_files != RLIM_INFINITY) setrlimit(RLIMIT_NOFILE, &files);
    execv(argv[0], argv.data());
    _exit(127);
  }

  static std::string content(int fd) {
    std::string text;
    char buffer[1 << 16];
    for (ssize_t got;
         (got = pread(fd, buffer, sizeof buffer, static_cast<off_t>(text.size()))) > 0;)
      text.append(buffer, static_cast<size_t>(got));
    return text;
  }

  int out_, err_;  // files in memory: the program never waits for the test to read
  pid_t pid_ = 0;
  bool reaped_ = false;
};

inline Ended run_tutti(const Arguments& arguments, const SubprocessOptions& options = {},
                       double deadline_s = 60) {
  Subprocess process(arguments, options);
  Ended ended = process.wait(deadline_s);
  EXPECT_FALSE(ended.late) << "still running after " << deadline_s << " s\n" << ended.err;
  EXPECT_EQ(ended.signal, 0) << ended.err;
  return ended;
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace tutti::testing_support
