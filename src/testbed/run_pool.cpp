#include "testbed/run_pool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace tutti {
namespace {

using nlohmann::json;

[[noreturn]] void be_child(const std::string& program, std::vector<char*>& argv, int output,
                           pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it died before the line above
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  dup2(nothing, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  execv(program.c_str(), argv.data());
  _exit(127);
}

std::string end_of(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

}  // namespace

RunPool::~RunPool() {
  signal_all(SIGKILL);
  for (auto& [id, child] : children_) {
    waitpid(child.pid, nullptr, 0);
    close(child.output);
  }
}

void RunPool::start(size_t id, const std::string& name, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"tutti"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const auto fail = [&] {
    throw FabricError(FabricError::Kind::kUnavailable, -1,
                      fmt::format("{}: cannot be started: {}", name, std::strerror(errno)));
  };
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) fail();
  std::fflush(nullptr);  // or the child would print buffered text again
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) be_child(program_, argv, fds[1], parent);
  close(fds[1]);
  if (pid < 0) {
    close(fds[0]);
    fail();
  }
  fcntl(fds[0], F_SETFL, O_NONBLOCK);
  Child& child = children_[id];
  child.pid = pid;
  child.output = fds[0];
  child.progress.name = name;
}

std::vector<EndedRun> RunPool::listen(int timeout_ms) {
  std::vector<pollfd> waiting;
  for (const auto& [id, child] : children_) waiting.push_back({child.output, POLLIN, 0});
  poll(waiting.data(), waiting.size(), timeout_ms);
  std::vector<EndedRun> ended;
  for (auto it = children_.begin(); it != children_.end();) {
    auto& [id, child] = *it;
    int status = 0;
    const bool gone = waitpid(child.pid, &status, WNOHANG) == child.pid;
    drain(child);  // after the wait: nothing that it said is missed
    if (!gone) {
      ++it;
      continue;
    }
    close(child.output);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    ended.push_back({id, code, child.last_error.empty() ? end_of(status) : child.last_error});
    if (WIFSIGNALED(status)) ended.back().error = end_of(status);
    it = children_.erase(it);
  }
  return ended;
}

void RunPool::drain(Child& child) {
  char buffer[1 << 14];
  for (ssize_t got; (got = read(child.output, buffer, sizeof buffer)) > 0;)
    child.partial_line.append(buffer, static_cast<size_t>(got));
  for (size_t end; (end = child.partial_line.find('\n')) != std::string::npos;) {
    take_line(child, child.partial_line.substr(0, end));
    child.partial_line.erase(0, end + 1);
  }
}

void RunPool::take_line(Child& child, const std::string& line) {
  const json event = json::parse(line, nullptr, false);
  if (!event.is_object()) {
    // The first line of an error says most; what follows are its consequences on other nodes.
    if (child.last_error.empty() && line.starts_with("tutti: ")) child.last_error = line.substr(7);
    return;
  }
  const auto number = [&](const char* key) -> std::optional<double> {
    const auto found = event.find(key);
    if (found == event.end() || !found->is_number()) return std::nullopt;
    return found->get<double>();
  };
  child.progress.step = static_cast<int64_t>(number("step").value_or(0));
  child.progress.total = static_cast<int64_t>(number("total").value_or(0));
  child.progress.loss = number("loss");
  child.progress.quality = number("quality");
}

void RunPool::signal_all(int number) const {
  for (const auto& [id, child] : children_) kill(child.pid, number);
}

std::vector<RunProgress> RunPool::progress() const {
  std::vector<RunProgress> result;
  for (const auto& [id, child] : children_) result.push_back(child.progress);
  return result;
}

}  // namespace tutti
