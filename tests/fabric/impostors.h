// Impostors: a test plays one side of the control protocol, by its own rules, to a launcher or to a
// node that is real.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/random.h"
#include "fabric/outcome.h"
#include "fabric/process/control_socket.h"
#include "fabric/process/process_clock.h"
#include "fabric/process/process_fabric.h"
#include "fabric/process/tcp.h"

namespace tutti::testing_support {

using process::ControlMessage;
using process::ControlSocket;
using process::FileDescriptor;

// Much longer than anything here takes, also on a busy machine.
inline constexpr double kPatienceS = 20;

// The next message that is not a ping; none when the other side hung up or the time is over.
inline std::optional<ControlMessage> hear(ControlSocket& control, double timeout_s = kPatienceS) {
  const int64_t deadline_ns = process::deadline_after(timeout_s);
  for (bool open = true; open && process::monotonic_ns() < deadline_ns;) {
    pollfd wait{control.fd(), POLLIN, 0};
    poll(&wait, 1, 20);
    open = control.fill();
    while (auto message = control.next())
      if (message->type != ControlMessage::Type::kPing) return message;
  }
  return std::nullopt;
}

// False when the other side has heard enough.
inline bool say_bytes(const ControlSocket& control, const std::string& bytes) {
  for (size_t sent = 0; sent < bytes.size();) {
    pollfd wait{control.fd(), POLLOUT, 0};
    poll(&wait, 1, 1000);
    const ssize_t now =
        send(control.fd(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (now < 0 && errno != EAGAIN) return false;
    if (now > 0) sent += static_cast<size_t>(now);
  }
  return true;
}

// Waits for a child of the test; one that does not end is killed, and that is a failure.
inline int status_of_child(pid_t child) {
  const int64_t deadline_ns = process::deadline_after(kPatienceS);
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (process::monotonic_ns() > deadline_ns) {
      ADD_FAILURE() << "a process did not end";
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      break;
    }
    usleep(2000);
  }
  return status;
}

// Plays a node, in a process of its own, after it was let in.
using ImpostorNode = std::function<void(ControlSocket&)>;

// Runs two honest nodes, who wait for a message of rank 2, and the impostor in its place.
inline std::vector<NodeOutcome> run_with_impostor(const ImpostorNode& impostor,
                                                  ProcessOptions options = {},
                                                  const std::atomic<bool>& stop = false) {
  pid_t child = -1;
  options.remote = 1;
  options.invite = [&](const std::string& address, const std::string& token) {
    std::fflush(nullptr);
    child = fork();
    if (child != 0) return;
    close_range(3, ~0U, 0);
    try {
      ControlSocket control(process::dial(process::parse_host_port(address, "test"), kPatienceS));
      control.post({ControlMessage::Type::kJoin, kAnyRank, 0, process::kProtocol, token});
      if (hear(control)) impostor(control);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "impostor: %s\n", error.what());
    }
    _exit(0);
  };
  const auto outcomes = make_process_fabric({"a", "b", "c"}, options)
                            ->run(
                                [](Node& node) -> std::string {
                                  node.membership().end_waits_on_any_loss(true);
                                  std::byte buffer[8];
                                  const Tag tag(Purpose::kUser, 1, 1);
                                  Handle handle = node.endpoint().receive(2, tag, buffer);
                                  const auto end = node.endpoint().wait(handle, kPatienceS);
                                  return "waited for rank " + std::to_string(end.peer);
                                },
                                stop);
  EXPECT_TRUE(WIFEXITED(status_of_child(child)));
  return outcomes;
}

// Plays a launcher, to a joining node that has shown its token; may send signals to it.
using ImpostorLauncher = std::function<void(ControlSocket&, pid_t)>;

struct Visit {
  int exit_code = -1;  // -1: it died of a signal
  std::string said;    // on its standard error
};

inline const std::atomic<bool>& stop_on_interrupt() {
  static std::atomic<bool> stop{false};
  struct sigaction action {};
  action.sa_handler = [](int) { stop = true; };
  sigaction(SIGINT, &action, nullptr);
  return stop;
}

// A real node joins the impostor and runs `body`, if it comes to that.
inline Visit visit_impostor(const ImpostorLauncher& impostor, const Fabric::Body& body) {
  const FileDescriptor door = process::listen_on({"127.0.0.1", 0});
  const int said = memfd_create("said", MFD_CLOEXEC);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(said, STDERR_FILENO);
    JoinOptions options{to_text(process::local_address(door)), "token", kPatienceS};
    close_range(3, ~0U, 0);
    signal(SIGPIPE, SIG_IGN);
    int exit_code = kExitInternal;
    try {
      join_process_fabric(
          options, [&](const Joined&) { return body; },
          [](const NodeOutcome& outcome) {
            std::fprintf(stderr, "outcome: %s\n", outcome.error.c_str());
          },
          stop_on_interrupt());
    } catch (const FabricError& error) {  // as the program does
      std::fprintf(stderr, "not let in: %s\n", error.what());
      exit_code = kExitPeerLost;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "unexpected: %s\n", error.what());
    }
    std::fflush(nullptr);
    _exit(exit_code);
  }
  pollfd wait{door.get(), POLLIN, 0};
  poll(&wait, 1, static_cast<int>(kPatienceS * 1e3));
  ControlSocket control(
      FileDescriptor(accept4(door.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)));
  if (hear(control)) impostor(control, child);
  const int status = status_of_child(child);
  control.close();
  Visit visit;
  if (WIFEXITED(status)) visit.exit_code = WEXITSTATUS(status);
  char buffer[4096];
  for (ssize_t got;
       (got = pread(said, buffer, sizeof buffer, static_cast<off_t>(visit.said.size()))) > 0;)
    visit.said.append(buffer, static_cast<size_t>(got));
  close(said);
  return visit;
}

// Frames that are well formed and mean anything. Nonsense is the end of a connection, so most are
// of the `usual` types and nearly right: with ranks that exist and addresses that were heard.
class Babbler {
 public:
  Babbler(uint64_t seed, Rank nodes, std::vector<ControlMessage::Type> usual)
      : random_(seed, Stream::kTest), nodes_(nodes), usual_(std::move(usual)) {}
  uint64_t below(uint64_t bound) { return random_.below(bound); }
  void listen(ControlSocket& control, double timeout_s) {
    const auto heard = hear(control, timeout_s);
    if (heard && heard->type == ControlMessage::Type::kAddress) addresses_.push_back(heard->body);
  }

  ControlMessage next() { return below(12) == 0 ? nonsense() : nearly_right(); }

 private:
  Rank rank() { return static_cast<Rank>(below(static_cast<uint64_t>(nodes_))); }

  ControlMessage nearly_right() {
    using Type = ControlMessage::Type;
    ControlMessage message{usual_[below(usual_.size())], rank(), 0, 0, {}};
    if (below(4) == 0) message.incarnation = static_cast<uint32_t>(below(3));
    if (message.type == Type::kResult)
      message.body =
          process::encode_outcome({NodeOutcome::Kind::kDone, "a result", "", 0, kAnyRank});
    if (message.type != Type::kAddress) return message;
    if (addresses_.empty()) return {Type::kPing, message.rank, 0, 0, {}};
    message.body = addresses_[below(addresses_.size())];
    return message;
  }

  ControlMessage nonsense() {
    ControlMessage message;
    message.type = static_cast<ControlMessage::Type>(1 + below(15));
    const Rank ranks[] = {kAnyRank, nodes_, process::kMaxRank, rank()};
    message.rank = ranks[below(4)];
    message.incarnation = below(2) == 0 ? random_.next_u32() : 0;
    message.number = random_.next_u64() >> below(64);
    message.body.resize(below(300));
    for (char& byte : message.body) byte = static_cast<char>(random_.next_u32());
    if (!addresses_.empty() && below(2) == 0) {
      message.body = addresses_[below(addresses_.size())];
      message.body[below(message.body.size())] ^= '\x10';
    }
    message.body.resize(std::min(message.body.size(), process::body_limit(message.type)));
    return message;
  }

  Random random_;
  Rank nodes_;
  std::vector<ControlMessage::Type> usual_;
  std::vector<std::string> addresses_;
};

}  // namespace tutti::testing_support
