// The process fabric takes the conformance suite once more, with nodes that join over loopback:
// each is a host of its own, reached by TCP. With four nodes or more, two are forked and share a
// host.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>

#include "fabric/exchange.h"
#include "tests/fabric/conformance.h"
#include "tests/support/joined_fabric.h"

namespace tutti {
namespace {

// Shared with the nodes, who say here whether their death is to be the last.
std::atomic<int>& restarts_wanted() {
  static auto* shared =
      static_cast<std::atomic<int>*>(mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
                                          MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  return *shared;
}

}  // namespace

const FabricUnderTest& fabric_under_test() {
  restarts_wanted();  // before the first fork
  static const FabricUnderTest fabric{
      [](int nodes, const ConformanceOptions& options) -> std::unique_ptr<Fabric> {
        ProcessOptions process;
        process.timeout_s = options.timeout_s;
        process.restarts = 10;
        process.remote = nodes > 3 ? nodes - 2 : nodes - 1;
        process.may_restart = [](Rank) {
          const bool wanted = restarts_wanted() > 0;
          if (wanted) --restarts_wanted();
          return wanted;
        };
        auto roles = options.roles;
        if (roles.empty()) roles.assign(static_cast<size_t>(nodes), "worker");
        return std::make_unique<testing_support::JoinedFabric>(roles, process);
      },
      false,
      17,
      2,  // the kernel buffers no more for a connection
      [](Node&) { raise(SIGKILL); },
      [](Node&) {
        ++restarts_wanted();
        raise(SIGKILL);
      },
  };
  return fabric;
}

// A guest that was stopped is as silent as one that computes, so it is lost once a peer has waited
// in vain. Without that the launcher would wait for as long as the guest is silent.
TEST(JoinedNode, ThatGoesSilentIsLostByTheDeadline) {
  ConformanceOptions options;
  options.timeout_s = 1.5;
  const auto outcomes = run_nodes(
      2,
      [](Node& node) -> std::string {
        node.clock().begin_step();
        if (node.endpoint().rank() == 1) {
          if (fork() == 0) {  // it goes on in the end, so that nothing is left behind
            sleep(5);
            kill(getppid(), SIGCONT);
            _exit(0);
          }
          raise(SIGSTOP);
          return kOk;
        }
        std::vector<std::byte> buffer(8);
        Handle handle = node.endpoint().receive(1, user_tag(1), buffer);
        throw_not_done(node, node.endpoint().wait(handle, node.timeout_s()));
        return kOk;
      },
      options);
  expect_lost(outcomes, 1);
  EXPECT_NE(outcomes[1].error.find(" said nothing for 1.5 s"), std::string::npos)
      << outcomes[1].error;
  EXPECT_NE(outcomes[0].kind, NodeOutcome::Kind::kDone);
}

// One that computes for longer than the timeout is not lost while nobody waits in vain for it.
TEST(JoinedNode, ThatComputesForLongIsWaitedFor) {
  ConformanceOptions options;
  options.timeout_s = 1;
  const auto outcomes = run_nodes(
      2,
      [](Node& node) -> std::string {
        if (node.endpoint().rank() == 1) {
          std::this_thread::sleep_for(std::chrono::milliseconds(2500));  // no call of the node
          IN_BODY(tell(node, 0, 1));
          return kOk;
        }
        std::vector<std::byte> buffer(8);
        Handle handle = node.endpoint().receive(1, Tag(Purpose::kControl, 1), buffer);
        State state = State::kTimedOut;
        for (int i = 0; i < 60 && state == State::kTimedOut; ++i)
          state = node.endpoint().wait(handle, 0.5).state;
        IN_BODY(state == State::kDone);
        return kOk;
      },
      options);
  expect_ok(outcomes, 0);
  expect_ok(outcomes, 1);
}

}  // namespace tutti
