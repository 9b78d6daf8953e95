// What only processes can do: be killed at any instruction, be too many for the cores, be idle.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <ctime>
#include <thread>

#include "core/random.h"
#include "fabric/exchange.h"
#include "fabric/outcome.h"
#include "fabric/process/process_fabric.h"
#include "tests/fabric/conformance.h"
#include "tests/support/stop_later.h"

namespace tutti {

const FabricUnderTest& fabric_under_test() {
  static const FabricUnderTest fabric{
      [](int nodes, const ConformanceOptions& options) {
        ProcessOptions process;
        process.timeout_s = options.timeout_s;
        return make_process_fabric(std::vector<std::string>(static_cast<size_t>(nodes), "worker"),
                                   process);
      },
      true,
      17,
      8,
      [](Node&) { raise(SIGKILL); },
      nullptr,
  };
  return fabric;
}

namespace {

// The system kills the calling process after this long, wherever it is by then.
void die_after(double seconds) {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGKILL;
  timer_t timer{};
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) std::abort();
  itimerspec when{};
  when.it_value.tv_nsec = static_cast<long>(seconds * 1e9);
  if (timer_settime(timer, 0, &when, nullptr) != 0) std::abort();
}

// Rank 1 dies somewhere in a storm of messages of all sizes. The others notice soon, and can still
// talk to each other, in both directions and with all sizes.
std::string survive(Node& node, uint32_t repetition) {
  constexpr Rank kVictim = 1;
  Endpoint& endpoint = node.endpoint();
  const Rank self = endpoint.rank();
  const int nodes = endpoint.size();
  Random random(repetition, Stream::kTest);
  const double death_s = 0.001 + 0.02 * random.uniform();
  const double start_s = node.clock().now();
  if (self == kVictim) die_after(death_s);
  const size_t sizes[] = {8, 3000, 65536, 70'000, 1'000'000};
  std::vector<std::byte> out(1'000'000), in(1'000'000);
  bool noticed = false;
  for (uint64_t step = 0; !noticed; ++step) {
    const size_t size = sizes[step % 5];
    std::vector<Handle> handles;
    for (Rank peer = 0; peer < nodes; ++peer) {
      if (peer == self) continue;
      handles.push_back(endpoint.receive(peer, user_tag(step), {in.data(), size}));
      handles.push_back(endpoint.send(peer, user_tag(step), {out.data(), size}));
    }
    node.membership().end_waits_on_any_loss(true);
    for (Handle& handle : handles)
      if (!noticed) noticed = endpoint.wait(handle, kLong_s).state == State::kPeerLost;
    IN_BODY(node.clock().now() - start_s < death_s + 2);
  }
  node.membership().end_waits_on_any_loss(false);
  IN_BODY(!node.membership().alive(kVictim));
  const Rank peer = 2 - self;
  for (uint64_t i = 0; i < 20; ++i) {
    const size_t size = sizes[i % 5];
    const auto data = pattern(size, i);
    Handle sent = endpoint.send(peer, Tag(Purpose::kControl, Tag::wrapped(i)), data);
    IN_BODY(receive_exactly(node, peer, Tag(Purpose::kControl, Tag::wrapped(i)), data));
    IN_BODY(endpoint.wait(sent, kLong_s).state == State::kDone);
  }
  return kOk;
}

TEST(Process, SurvivorsOfAKillNoticeAndGoOn) {
  for (uint32_t repetition = 0; repetition < 40; ++repetition) {
    const auto outcomes = run_nodes(3, [&](Node& node) { return survive(node, repetition); });
    expect_ok(outcomes, 0);
    expect_lost(outcomes, 1);
    expect_ok(outcomes, 2);
    ASSERT_FALSE(testing::Test::HasFailure()) << "repetition " << repetition;
  }
}

// Counts forks, and lets the one that makes `victim` die after `after_s`.
struct EarlyDeath {
  int forks = 0;
  int victim = -1;
  double after_s = 0;
};
EarlyDeath& early_death() {
  static EarlyDeath* plan = [] {
    pthread_atfork([] { ++early_death().forks; }, nullptr,
                   [] {
                     const EarlyDeath& now = early_death();
                     if (now.forks != now.victim + 1) return;
                     if (now.after_s <= 0) raise(SIGKILL);
                     die_after(now.after_s);
                   });
    return new EarlyDeath;
  }();
  return *plan;
}

std::string notice_early_death(Node& node, Rank victim) {
  Endpoint& endpoint = node.endpoint();
  const Rank self = endpoint.rank();
  std::vector<std::byte> buffer(8);
  // All peers hear of the death as an event.
  const auto event = next_event(node);
  IN_BODY(event && event->kind == MemberEvent::Kind::kLost && event->rank == victim);
  IN_BODY(!node.membership().alive(victim));
  // They can go on without the victim.
  for (Rank peer = 0; peer < endpoint.size(); ++peer)
    if (peer != self && peer != victim) IN_BODY(tell(node, peer, 1));
  for (Rank peer = 0; peer < endpoint.size(); ++peer)
    if (peer != self && peer != victim) IN_BODY(hear(node, peer, 1));
  Handle from_it = endpoint.receive(victim, user_tag(2), buffer);
  IN_BODY(endpoint.wait(from_it, kLong_s).state == State::kPeerLost);
  // They name it as the reason when they cannot go on.
  node.membership().end_waits_on_any_loss(true);
  Handle from_any = endpoint.receive(kAnyRank, user_tag(2), buffer);
  const Completion completion = endpoint.wait(from_any, kLong_s);
  IN_BODY(completion.state == State::kPeerLost && completion.peer == victim);
  return kOk;
}

// A node can die before it has met anybody, while the others connect to it, and before they exist.
TEST(Process, ADeathAtTheVeryStartIsHeardOfByAll) {
  constexpr int kNodes = 4;
  for (int repetition = 0; repetition < 45; ++repetition) {
    const Rank victim = repetition % 3;
    early_death() = {0, victim, 0.001 * (repetition / 3)};
    const auto outcomes =
        run_nodes(kNodes, [&](Node& node) { return notice_early_death(node, victim); });
    early_death().victim = -1;
    for (Rank rank = 0; rank < kNodes; ++rank)
      rank == victim ? expect_lost(outcomes, rank) : expect_ok(outcomes, rank);
    ASSERT_FALSE(testing::Test::HasFailure()) << "repetition " << repetition;
  }
}

// Rank 1 asks rank 0 to connect to it, and has died when rank 0 does so. UCX cannot attach to the
// memory of a dead process, which is a loss like any other: rank 0 goes on. There are so many nodes
// that two of them connect when they first talk.
TEST(Process, APeerThatDiedBeforeOneConnectsToItIsLost) {
  constexpr int kNodes = 17;
  auto& asking = *static_cast<std::atomic<pid_t>*>(mmap(nullptr, sizeof(std::atomic<pid_t>),
                                                        PROT_READ | PROT_WRITE,
                                                        MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const auto outcomes = run_nodes(kNodes, [&](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    std::vector<std::byte> buffer(8);
    if (endpoint.rank() > 1) return kOk;
    if (endpoint.rank() == 1) {
      Handle handle = endpoint.receive(0, user_tag(1), buffer);
      IN_BODY(endpoint.wait(handle, kShort_s).state == State::kTimedOut);
      asking = getpid();
      raise(SIGKILL);
    }
    // Without a call of the node until the launcher has seen the end of rank 1.
    while (asking == 0 || kill(asking, 0) == 0) usleep(1000);
    Handle sent = endpoint.send(1, user_tag(1), buffer);
    const Completion completion = endpoint.wait(sent, kLong_s);
    IN_BODY(completion.state == State::kPeerLost && completion.peer == 1);
    Handle own = endpoint.send(0, user_tag(2), buffer);
    IN_BODY(receive_exactly(node, 0, user_tag(2), buffer));
    IN_BODY(endpoint.wait(own, kLong_s).state == State::kDone);
    return kOk;
  });
  for (Rank rank = 0; rank < kNodes; ++rank)
    rank == 1 ? expect_lost(outcomes, rank) : expect_ok(outcomes, rank);
  munmap(&asking, sizeof asking);
}

// What a dead peer leaves behind must not keep the others awake.
TEST(Process, AnIdleSurvivorUsesNoProcessor) {
  const auto outcomes = run_nodes(3, [](Node& node) -> std::string {
    Endpoint& endpoint = node.endpoint();
    std::vector<std::byte> out(50'000), in(50'000);
    for (uint64_t step = 0; step < 200 || endpoint.rank() == 1; ++step) {
      if (step == 100 && endpoint.rank() == 1) raise(SIGKILL);
      Handle sent = endpoint.send((endpoint.rank() + 1) % 3, user_tag(step), out);
      Handle received = endpoint.receive((endpoint.rank() + 2) % 3, user_tag(step), in);
      if (endpoint.wait(received, kShort_s).state != State::kDone) break;
      static_cast<void>(endpoint.wait(sent, kShort_s));
    }
    IN_BODY(next_event(node));
    const double before_s = node.clock().busy_s();
    Handle never = endpoint.receive(kAnyRank, user_tag(1'000'000), in);
    IN_BODY(endpoint.wait(never, 1).state == State::kTimedOut);
    IN_BODY(node.clock().busy_s() - before_s < 0.05);
    return kOk;
  });
  expect_ok(outcomes, 0);
  expect_lost(outcomes, 1);
  expect_ok(outcomes, 2);
}

// A blocked node is woken by each thing that it can wait for.
TEST(Process, SleepersWakeSoon) {
  run_all_ok(2, [](Node& node) -> std::string {
    constexpr double kSoon_s =
        0.3;  // far less than any timeout, far more than a busy machine needs
    Endpoint& endpoint = node.endpoint();
    const double nap_s = 0.1;
    Window* window = endpoint.open_window(64, kLong_s);
    if (endpoint.rank() == 0) {
      const auto large = pattern(1'000'000, 1);
      const double start_s = node.clock().now();
      IN_BODY(send_all(node, 1, user_tag(1), large));  // waits for the receive
      const double sent_s = node.clock().now() - start_s;
      IN_BODY(window->await(1, 0, 1, kLong_s).state == State::kDone);
      const double awaited_s = node.clock().now() - start_s;
      IN_BODY(hear(node, 1, 2));
      const double heard_s = node.clock().now() - start_s;
      IN_BODY(sent_s < nap_s + kSoon_s);
      IN_BODY(awaited_s < 2 * nap_s + 2 * kSoon_s);
      IN_BODY(heard_s < 3 * nap_s + 3 * kSoon_s);
      return kOk;
    }
    node.clock().sleep(nap_s);
    IN_BODY(receive_exactly(node, 0, user_tag(1), pattern(1'000'000, 1)));
    node.clock().sleep(nap_s);
    window->post(0, 1);
    node.clock().sleep(nap_s);
    IN_BODY(tell(node, 0, 2));
    return kOk;
  });
}

void exchange_in_a_ring(int nodes, const ProcessOptions& options, size_t bytes, uint64_t steps) {
  const std::atomic<bool> stop{false};
  const auto fabric =
      make_process_fabric(std::vector<std::string>(static_cast<size_t>(nodes), "worker"), options);
  const auto outcomes = fabric->run(
      [&](Node& node) -> std::string {
        Endpoint& endpoint = node.endpoint();
        const Rank self = endpoint.rank();
        const Rank last = (self + nodes - 1) % nodes;
        std::vector<std::byte> in(bytes);
        const auto out = pattern(bytes, static_cast<uint64_t>(self));
        const auto expected = pattern(bytes, static_cast<uint64_t>(last));
        for (uint64_t step = 0; step < steps; ++step) {
          Handle handle = endpoint.receive(last, user_tag(step), in);
          send(node, (self + 1) % nodes, user_tag(step), out);
          finish(node, handle);
          IN_BODY(in == expected);
        }
        // From anybody too.
        uint64_t sum = 0;
        for (Rank peer = 0; peer < nodes && self == 0; ++peer) {
          uint64_t value = 0;
          Handle handle = endpoint.receive(kAnyRank, user_tag(steps),
                                           std::as_writable_bytes(std::span(&value, 1)));
          if (peer == 0) IN_BODY(send_number(node, 0, user_tag(steps), 1));
          finish(node, handle);
          sum += value;
        }
        if (self != 0) IN_BODY(send_number(node, 0, user_tag(steps), 1));
        IN_BODY(self != 0 || sum == static_cast<uint64_t>(nodes));
        return kOk;
      },
      stop);
  for (Rank rank = 0; rank < nodes; ++rank) expect_ok(outcomes, rank);
  EXPECT_GT(fabric->figures().startup_s, 0);
  EXPECT_TRUE(fabric->figures().energy.hosts.empty());  // nothing is simulated
}

TEST(Process, EightNodesShareTwoCores) { exchange_in_a_ring(8, {}, 1'000'000, 30); }

// So many connect only when they first talk.
TEST(Process, ManyNodesConnectWhenTheyMust) { exchange_in_a_ring(24, {}, 100'000, 3); }

TEST(Process, WhereFetchingIsForbiddenUcxCopies) {
  ProcessOptions options;
  options.fetch = false;
  exchange_in_a_ring(3, options, 3'000'000, 10);
}

// A process that was started later shares windows that are opened after its return, also when the
// others announce theirs before it is ready: the memory is passed on, not inherited. Openings begin
// only while nobody is lost, so there are none from before its return to be handed to it.
TEST(Process, ARestartedNodeSharesWindows) {
  ProcessOptions options;
  options.restarts = 1;
  const std::atomic<bool> stop{false};
  const auto outcomes =
      make_process_fabric({"a", "b", "c"}, options)
          ->run(
              [](Node& node) -> std::string {
                Endpoint& endpoint = node.endpoint();
                const Rank self = endpoint.rank();
                const bool fresh = node.membership().incarnation(1) == 0;
                if (fresh) endpoint.open_window(100, kLong_s);
                if (self == 1 && fresh) {
                  IN_BODY(hear(node, 0, 1) && hear(node, 2, 1));
                  raise(SIGKILL);
                }
                if (self != 1) {
                  IN_BODY(tell(node, 1, 1));
                  IN_BODY(next_event(node)->kind == MemberEvent::Kind::kLost);
                  IN_BODY(next_event(node)->kind == MemberEvent::Kind::kJoined);
                } else {
                  node.clock().sleep(0.1);
                }
                Window* window = endpoint.open_window(5000, kLong_s);
                window->of(self)[4999] = static_cast<std::byte>(self + 7);
                window->post(1, 1);
                for (Rank rank = 0; rank < 3; ++rank) {
                  const auto seen = window->await(rank, 1, 1, kLong_s);
                  IN_BODY(seen.state == State::kDone);
                  IN_BODY(window->of(rank).size() == 5000);
                  IN_BODY(window->of(rank)[4999] == static_cast<std::byte>(rank + 7));
                }
                return kOk;
              },
              stop);
  for (Rank rank = 0; rank < 3; ++rank) expect_ok(outcomes, rank);
}

TEST(Process, OpeningAWindowEndsWhenAMemberIsLost) {
  const auto outcomes = run_nodes(3, [](Node& node) -> std::string {
    if (node.endpoint().rank() == 1) {
      node.clock().sleep(0.05);
      raise(SIGKILL);
    }
    node.endpoint().open_window(100, kLong_s);
    return "opened";
  });
  expect_lost(outcomes, 1);
  for (const size_t rank : {0u, 2u}) {
    EXPECT_EQ(outcomes[rank].kind, NodeOutcome::Kind::kFailed);
    EXPECT_EQ(outcomes[rank].lost_peer, 1);
  }
}

TEST(Process, AFailedNodeIsLostToTheOthers) {
  const auto outcomes = run_nodes(2, [](Node& node) -> std::string {
    if (node.endpoint().rank() == 1) throw std::runtime_error("a bug");
    std::vector<std::byte> buffer(8);
    Handle handle = node.endpoint().receive(1, user_tag(1), buffer);
    IN_BODY(node.endpoint().wait(handle, kLong_s).state == State::kPeerLost);
    return kOk;
  });
  expect_ok(outcomes, 0);
  EXPECT_EQ(outcomes[1].error, "a bug");
}

// Ctrl-C reaches the whole group: the nodes leave it to the launcher. One that makes no Node calls
// is killed in the end, which makes the stop no loss.
void expect_a_stop_among(const std::vector<std::string>& roles) {
  const testing_support::StopLater stop(300);
  ProcessOptions options;
  options.stop_s = 0.3;
  const Fabric::Body body = [](Node& node) -> std::string {
    raise(SIGINT);
    raise(SIGTERM);
    const bool deaf = node.endpoint().role(node.endpoint().rank()) == "deaf";
    while (true)
      if (deaf)
        std::this_thread::sleep_for(std::chrono::seconds(1));
      else
        node.clock().sleep(0.01);
  };
  const auto outcomes = make_process_fabric(roles, options)->run(body, stop.requested());
  for (size_t rank = 0; rank < roles.size(); ++rank) {
    EXPECT_EQ(outcomes[rank].kind, NodeOutcome::Kind::kInterrupted) << rank;
    EXPECT_EQ(outcomes[rank].exit_code, kExitInterrupted) << rank;
    EXPECT_NE(outcomes[rank].error.find("interrupted"), std::string::npos) << outcomes[rank].error;
    EXPECT_EQ(outcomes[rank].error.find("signal 9") != std::string::npos, roles[rank] == "deaf");
  }
}

TEST(Process, SignalsAreTheLaunchersAffair) { expect_a_stop_among({"polite", "deaf"}); }
TEST(Process, AStopIsAStopThoughNobodyReacts) { expect_a_stop_among({"deaf", "deaf"}); }

}  // namespace
}  // namespace tutti
