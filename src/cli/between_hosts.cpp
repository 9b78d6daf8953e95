#include "cli/between_hosts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <utility>

#include "cli/bench.h"
#include "core/bytes.h"
#include "core/error.h"
#include "fabric/exchange.h"
#include "fabric/process/control_socket.h"
#include "fabric/process/process_fabric.h"
#include "jobs/run_folder.h"

namespace tutti {
namespace {

using nlohmann::json;
using process::FileDescriptor;
using process::NamespacedNetwork;

constexpr int kPings = 50;
constexpr int kLook_ms = 10;
// Ranks are given out in the order in which guests come, and all are let in at once: each gets time
// to be the next.
constexpr int kBetweenGuests_ms = 200;

// Before everything else on this machine, whose load is none of the network's. Without the right to
// it the figures are merely worse.
void come_first() {
  const sched_param priority{.sched_priority = 10};
  sched_setscheduler(0, SCHED_RR, &priority);
}

// In a process of its own on host 0, which forks the others and sends them to their hosts.
[[noreturn]] void launch_on_hosts(const NamespacedNetwork& network, int nodes,
                                  const Fabric::Body& body, int results_fd,
                                  const std::atomic<bool>& stop) {
  setpgid(0, 0);  // a terminal's Ctrl-C comes from the parent, and once
  network.enter(0);
  come_first();
  ProcessOptions options;
  options.remote = nodes - 1;
  options.listen = NamespacedNetwork::address(0) + ":0";
  options.invite = [&](const std::string& address, const std::string& token) {
    for (int host = 1; host < nodes; ++host) {
      if (fork() != 0) continue;
      close_range(3, ~0U, 0);
      try {
        network.enter(host);
        join_process_fabric(
            {.address = address, .token = token}, [&](const Joined&) { return body; },
            [](const NodeOutcome&) {}, stop);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "tutti: host %d: %s\n", host, error.what());
      }
      _exit(1);
    }
  };
  int code = 1;
  try {
    const std::vector<std::string> roles(static_cast<size_t>(nodes), "worker");
    const auto outcomes = make_process_fabric(roles, options)->run(body, stop);
    const std::string text = json(results_of(outcomes, "between hosts", stop)).dump();
    code = write(results_fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tutti: %s\n", error.what());
  }
  while (wait(nullptr) > 0) {
  }
  _exit(code);
}

// Children of a training between hosts: ended when this goes, whatever happens.
class Children {
 public:
  ~Children() {
    for (const pid_t pid : running_) kill(pid, SIGKILL);
    for (const pid_t pid : running_) waitpid(pid, nullptr, 0);
  }
  Children() = default;
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  // Runs `command` on a host. Its standard output and standard error go to these files.
  void start(const NamespacedNetwork& network, int host, const Words& command, int out, int err) {
    const pid_t maker = getpid();
    std::fflush(nullptr);
    const pid_t pid = fork();
    if (pid < 0) throw Error("cannot start a process");
    if (pid == 0) {
      setpgid(0, 0);  // a terminal's Ctrl-C comes from the parent, and once
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != maker) _exit(1);
      become(network, host, command, out, err);
    }
    running_.push_back(pid);
  }
  // Whether the first that was started has ended. The others end because of it.
  bool first_ended() {
    if (running_.empty() || waitpid(running_.front(), nullptr, WNOHANG) != running_.front())
      return running_.empty();
    running_.erase(running_.begin());
    return true;
  }
  void wait_all() {
    for (const pid_t pid : std::exchange(running_, {})) waitpid(pid, nullptr, 0);
  }

 private:
  [[noreturn]] static void become(const NamespacedNetwork& network, int host, const Words& command,
                                  int out, int err) {
    try {
      network.enter(host);
    } catch (const std::exception&) {
      _exit(1);
    }
    come_first();
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execv(arguments[0], arguments.data());
    _exit(127);
  }

  std::vector<pid_t> running_;
};

// Reads a launcher's standard error: whom it invites, and whom it lets in.
class Invitations {
 public:
  explicit Invitations(int fd) : fd_(fd) {}
  // Takes what has come within some milliseconds. False: it has closed its end.
  bool listen() {
    pollfd polled{.fd = fd_, .events = POLLIN, .revents = 0};
    if (poll(&polled, 1, kLook_ms) <= 0) return true;
    std::array<char, 4096> piece{};
    const ssize_t got = read(fd_, piece.data(), piece.size());
    if (got <= 0) return false;
    text_.append(piece.data(), static_cast<size_t>(got));
    return true;
  }
  // The words of the command that joins; none as long as nobody is invited.
  Words command() const {
    const std::string_view before = "tutti join ", between = " --token ";
    const size_t begin = text_.find(before), middle = text_.find(between);
    if (begin == std::string::npos || middle == std::string::npos) return {};
    const size_t end = text_.find('\n', middle);
    if (end == std::string::npos) return {};
    const size_t address = begin + before.size(), token = middle + between.size();
    return {program_folder() + "/tutti",
            "join",
            text_.substr(address, middle - address),
            "--token",
            text_.substr(token, end - token),
            "--quiet"};
  }
  // Whether this host's guest has this rank, once all have been let in.
  bool has(int host, size_t rank) const {
    const size_t line = text_.find(fmt::format(" joined as rank {}\n", rank));
    if (line == std::string::npos) return false;
    const size_t begin = text_.rfind(' ', line - 1) + 1;
    return text_.compare(begin, text_.find(':', begin) - begin, NamespacedNetwork::address(host)) ==
           0;
  }
  const std::string& text() const { return text_; }

 private:
  int fd_;
  std::string text_;
};

std::string contents_of(int fd) {
  std::string text(static_cast<size_t>(lseek(fd, 0, SEEK_END)), ' ');
  if (pread(fd, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    throw Error("the output of a run cannot be read");
  return text;
}

}  // namespace

double one_way_s(Node& node) {
  std::array<std::byte, 8> word{};
  std::vector<double> times;
  const Rank self = node.endpoint().rank();
  for (uint64_t i = 0; i < kPings && self < 2; ++i) {
    const Tag tag(Purpose::kUser, Tag::wrapped(i));
    const double start_s = node.clock().now();
    if (self == 0) send(node, 1, tag, word);
    receive(node, 1 - self, tag, word);
    if (self == 1) send(node, 0, tag, word);
    times.push_back((node.clock().now() - start_s) / 2);
  }
  return times.empty() ? 0 : median(times);
}

std::vector<json> results_of(const std::vector<NodeOutcome>& outcomes, const std::string& what,
                             const std::atomic<bool>& stop) {
  require_all_done(outcomes, what, stop);
  std::vector<json> results;
  results.reserve(outcomes.size());
  for (const NodeOutcome& outcome : outcomes) results.push_back(json::parse(outcome.result));
  return results;
}

std::vector<json> run_between_hosts(const NamespacedNetwork& network, int nodes,
                                    const Fabric::Body& body, const std::atomic<bool>& stop) {
  const FileDescriptor results(memfd_create("results", MFD_CLOEXEC));
  std::fflush(nullptr);  // or the child would write our buffers a second time
  const pid_t pid = fork();
  if (pid == 0) launch_on_hosts(network, nodes, body, results.get(), stop);
  int status = 0;
  bool told = false;  // once: a second signal would end it at once
  while (waitpid(pid, &status, WNOHANG) != pid) {
    if (stop && !std::exchange(told, true)) kill(pid, SIGTERM);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  leave_if_stopped(stop);
  if (status != 0) throw Error("the run between the hosts failed");
  return json::parse(contents_of(results.get()));
}

json train_between_hosts(const NamespacedNetwork& network, const HostsTraining& training,
                         const std::atomic<bool>& stop) {
  const FileDescriptor out(memfd_create("record", MFD_CLOEXEC));
  const FileDescriptor nowhere(open("/dev/null", O_RDWR | O_CLOEXEC));
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw Error("cannot make a pipe");
  const FileDescriptor reading(ends[0]);
  FileDescriptor writing(ends[1]);
  Children children;
  children.start(
      network, 0,
      {program_folder() + "/tutti", "train", training.job, "--json", "--out", training.run},
      out.get(), writing.get());
  writing.reset();
  Invitations invitations(reading.get());
  size_t started = 0;
  auto next = std::chrono::steady_clock::now();
  while (invitations.listen()) {
    leave_if_stopped(stop);
    const Words command = invitations.command();
    const auto now = std::chrono::steady_clock::now();
    if (command.empty() || started == training.guests.size() || now < next) continue;
    children.start(network, training.guests[started++], command, nowhere.get(), nowhere.get());
    next = now + std::chrono::milliseconds(kBetweenGuests_ms);
  }
  while (!children.first_ended()) {
    leave_if_stopped(stop);
    std::this_thread::sleep_for(std::chrono::milliseconds(kLook_ms));
  }
  children.wait_all();
  for (size_t i = 0; i < training.guests.size(); ++i)
    if (!invitations.has(training.guests[i], i + 1))
      throw Error(fmt::format("{}: host {} did not join as rank {}: {}", training.job,
                              training.guests[i], i + 1, invitations.text()));
  const std::string record = contents_of(out.get());
  if (record.empty()) throw Error(training.job + ": " + invitations.text());
  const json ended = json::parse(record, nullptr, false);
  if (ended.is_object() && ended.contains("error"))
    throw Error(fmt::format("{}: {}", training.job, ended["error"].dump()));
  return record_in(record);
}

}  // namespace tutti
