// Tests nodes that are stopped, and stay stopped or go on later.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

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

}  // namespace
}  // namespace tutti
