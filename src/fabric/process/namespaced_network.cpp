#include "fabric/process/namespaced_network.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "core/error.h"
#include "fabric/process/control_socket.h"

namespace tutti::process {
namespace {

// What the bucket lets through at once: little beside a message, but no less than the 64 KiB that
// the system hands over as one piece, or it takes them apart and the cores cannot keep up.
constexpr const char* kBurst = "80kb";
constexpr const char* kQueue = "2mb";

[[noreturn]] void fail(const std::string& what) {
  throw FabricError(FabricError::Kind::kUnavailable, -1, what);
}

// A process that does nothing in a network namespace of its own, until its maker is gone.
pid_t start_holder() {
  std::array<int, 2> ready{};
  if (pipe2(ready.data(), O_CLOEXEC) != 0) fail("cannot make a pipe");
  const FileDescriptor reading(ready[0]);
  FileDescriptor writing(ready[1]);
  const pid_t maker = getpid();
  const pid_t pid = fork();
  if (pid < 0) fail(std::string("cannot start a process: ") + std::strerror(errno));
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const bool made = getppid() == maker && unshare(CLONE_NEWNET) == 0;
    const char answer = made ? 1 : 0;
    if (write(ready[1], &answer, 1) != 1 || !made) _exit(1);
    while (true) pause();
  }
  writing.reset();
  char answer = 0;
  if (read(reading.get(), &answer, 1) == 1 && answer == 1) return pid;
  waitpid(pid, nullptr, 0);
  fail("cannot make a network namespace: it needs root");
}

void enter_namespace_of(pid_t pid) {
  const std::string path = fmt::format("/proc/{}/ns/net", pid);
  const FileDescriptor space(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (space.get() < 0 || setns(space.get(), CLONE_NEWNET) != 0)
    fail(fmt::format("cannot enter {}: {}", path, std::strerror(errno)));
}

}  // namespace

std::string NamespacedNetwork::why_not() {
  if (geteuid() != 0) return "network namespaces need root";
  for (const char* tool : {"ip", "tc"})
    if (std::system(fmt::format("command -v {} >/dev/null", tool).c_str()) != 0)
      return fmt::format("there is no `{}`; install iproute2", tool);
  return "";
}

NamespacedNetwork::NamespacedNetwork(int hosts) {
  for (int i = 0; i <= hosts; ++i) holders_.push_back(start_holder());
  const auto bridge = static_cast<size_t>(hosts);
  run(bridge, "ip link add bridge type bridge && ip link set bridge up");
  for (size_t host = 0; host < bridge; ++host) {
    run(bridge, fmt::format("ip link add port{0} type veth peer name eth0 netns {1} && ip link set "
                            "port{0} master bridge up",
                            host, holders_[host]));
    run(host, fmt::format("ip addr add {}/24 dev eth0 && ip link set eth0 up && ip link set lo up",
                          address(static_cast<int>(host))));
    // The classic ones, whatever this system prefers: results depend on it.
    run(host,
        "for name in cubic reno; do echo $name 2>/dev/null "
        ">/proc/sys/net/ipv4/tcp_congestion_control && break; done || true");
  }
}

NamespacedNetwork::~NamespacedNetwork() {
  for (const pid_t holder : holders_) {
    kill(holder, SIGKILL);
    waitpid(holder, nullptr, 0);
  }
}

std::string NamespacedNetwork::address(int host) { return fmt::format("10.77.0.{}", host + 1); }

void NamespacedNetwork::enter(int host) const {
  enter_namespace_of(holders_.at(static_cast<size_t>(host)));
}

void NamespacedNetwork::shape(double bits_per_s) const {
  const auto bucket = [&](const std::string& device) {
    return bits_per_s > 0
               ? fmt::format("tc qdisc replace dev {} root tbf rate {:.0f}bit burst {} limit {}",
                             device, bits_per_s, kBurst, kQueue)
               : fmt::format("tc qdisc del dev {} root 2>/dev/null || true", device);
  };
  for (size_t host = 0; host + 1 < holders_.size(); ++host) {
    run(host, bucket("eth0"));
    run(holders_.size() - 1, bucket(fmt::format("port{}", host)));
  }
}

void NamespacedNetwork::cut(int host) const {
  run(holders_.size() - 1, fmt::format("ip link set port{} down", host));
}

void NamespacedNetwork::run(size_t holder, const std::string& commands) const {
  const pid_t pid = fork();
  if (pid < 0) fail(std::string("cannot start a process: ") + std::strerror(errno));
  if (pid == 0) {
    try {
      enter_namespace_of(holders_[holder]);
      execl("/bin/sh", "sh", "-c", commands.c_str(), nullptr);
    } catch (const FabricError&) {
    }
    _exit(127);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  if (status != 0) fail("cannot set up the network: " + commands);
}

}  // namespace tutti::process
