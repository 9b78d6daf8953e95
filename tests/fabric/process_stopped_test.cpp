// Tests nodes that are stopped, and stay stopped or go on later.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "fabric/outcome.h"
#include "tests/fabric/conformance.h"

namespace tutti {
namespace {

// A stopped node neither dies nor goes on, and a node that computes for longer than the timeout
// must not be taken for one. Peers hear of the stopped node before their own timeout ends, also
// those that wait for another waiting node.
TEST(Process, AStoppedNodeIsLostByTheDeadline) {
  ConformanceOptions options;
  options.timeout_s = 3;
  const auto outcomes = run_nodes(
      3,
      [](Node& node) -> std::string {
        const Rank self = node.endpoint().rank();
        if (self == 2) {
          compute(node, 2 * node.timeout_s());
          return kOk;
        }
        for (int step = 0; step < 3; ++step) node.clock().begin_step();
        if (self == 1) raise(SIGSTOP);
        std::vector<std::byte> buffer(8);
        Handle handle = node.endpoint().receive(1, user_tag(1), buffer);
        const Completion completion = node.endpoint().wait(handle, node.timeout_s());
        IN_BODY(completion.state == State::kPeerLost && completion.peer == 1);
        return kOk;
      },
      options);
  expect_ok(outcomes, 0);
  expect_lost(outcomes, 1);
  expect_ok(outcomes, 2);
  EXPECT_EQ(outcomes[1].exit_code, kExitPeerLost);
  EXPECT_NE(outcomes[1].error.find("rank 1 was stopped for 1.5 s, in step 3"), std::string::npos)
      << outcomes[1].error;
}

// The time in which a node was stopped, for example by Ctrl-Z, does not count as waiting.
TEST(Process, AStopOfItsOwnDoesNotCountAsWaiting) {
  constexpr double kPatience_s = 2;
  const auto outcomes = run_nodes(2, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    if (endpoint.rank() == 0) {
      pid_t self = getpid();
      Handle sent = endpoint.send(1, user_tag(1), std::as_bytes(std::span(&self, 1)));
      std::vector<std::byte> buffer(8);
      Handle handle = endpoint.receive(1, user_tag(2), buffer);
      IN_BODY(endpoint.wait(handle, kPatience_s).state == State::kDone);
      return kOk;
    }
    pid_t peer = 0;
    Handle heard = endpoint.receive(0, user_tag(1), std::as_writable_bytes(std::span(&peer, 1)));
    IN_BODY(endpoint.wait(heard, kLong_s).state == State::kDone);
    IN_BODY(kill(peer, SIGSTOP) == 0);
    node.clock().sleep(kPatience_s + 0.5);
    IN_BODY(kill(peer, SIGCONT) == 0);
    node.clock().sleep(0.2);
    IN_BODY(send_number(node, 0, user_tag(2), 1));
    return kOk;
  });
  expect_ok(outcomes, 0);
  expect_ok(outcomes, 1);
}

// Ctrl-Z stops a launcher and all of its nodes, and nobody says which of them goes on first. Here
// it is the launcher, which finds a node still stopped: that node is not to blame for the time in
// which the launcher itself did not look.
std::string stop_the_launcher_and_a_node(Node& node) {
  Endpoint& endpoint = node.endpoint();
  if (endpoint.rank() == 0) {
    pid_t self = getpid();
    IN_BODY(send_all(node, 1, user_tag(1), std::as_bytes(std::span(&self, 1))));
    return hear(node, 1, 2) ? kOk : "not told to go on";
  }
  pid_t peer = 0;
  Handle heard = endpoint.receive(0, user_tag(1), std::as_writable_bytes(std::span(&peer, 1)));
  IN_BODY(endpoint.wait(heard, kLong_s).state == State::kDone);
  node.clock().sleep(0.6);  // so that the launcher has seen both of them run
  const pid_t launcher = getppid();
  IN_BODY(kill(peer, SIGSTOP) == 0 && kill(launcher, SIGSTOP) == 0);
  node.clock().sleep(2.5);
  IN_BODY(kill(launcher, SIGCONT) == 0);
  node.clock().sleep(0.7);
  IN_BODY(kill(peer, SIGCONT) == 0);
  IN_BODY(tell(node, 0, 2));
  return kOk;
}

TEST(Process, AStopOfTheLauncherDoesNotCountAgainstNodes) {
  std::fflush(nullptr);
  const pid_t launcher = fork();
  if (launcher == 0) {  // a process of its own: who watches the test must not see it stop
    ConformanceOptions options;
    options.timeout_s = 4;  // a node may be stopped for half of it
    const auto outcomes = run_nodes(2, stop_the_launcher_and_a_node, options);
    for (const NodeOutcome& outcome : outcomes)
      if (outcome.result != kOk) std::fprintf(stderr, "%s\n", outcome.error.c_str());
    _exit(outcomes[0].result == kOk && outcomes[1].result == kOk ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(launcher, &status, 0), launcher);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace tutti
