// A node that has shown the token and then does not keep to the protocol: the launcher names it and
// goes on, honest nodes lose a peer and nothing else.
#include <fstream>

#include "tests/fabric/impostors.h"

namespace tutti {
namespace {

using namespace testing_support;
using Type = ControlMessage::Type;

constexpr Rank kImpostor = 2;

void stay_silent(ControlSocket& control) {
  while (hear(control)) {
  }
}

void expect_honest_nodes_survive(const std::vector<NodeOutcome>& outcomes) {
  ASSERT_EQ(outcomes.size(), 3u);
  for (const Rank rank : {0, 1}) {
    const NodeOutcome& outcome = outcomes[static_cast<size_t>(rank)];
    EXPECT_EQ(outcome.kind, NodeOutcome::Kind::kDone) << rank << ": " << outcome.error;
    EXPECT_EQ(outcome.result, "waited for rank 2") << rank;
  }
}

void expect_blamed(const std::vector<NodeOutcome>& outcomes, const std::string& reason) {
  expect_honest_nodes_survive(outcomes);
  EXPECT_EQ(outcomes[kImpostor].kind, NodeOutcome::Kind::kLost);
  EXPECT_EQ(outcomes[kImpostor].exit_code, kExitPeerLost);
  EXPECT_NE(outcomes[kImpostor].error.find("rank 2 at 127.0.0.1:"), std::string::npos)
      << outcomes[kImpostor].error;
  EXPECT_NE(outcomes[kImpostor].error.find(reason), std::string::npos) << outcomes[kImpostor].error;
}

std::string result_of(NodeOutcome::Kind kind, int exit_code, Rank lost_peer) {
  NodeOutcome outcome;
  outcome.kind = kind;
  outcome.exit_code = exit_code;
  outcome.lost_peer = lost_peer;
  return process::encode_outcome(outcome);
}

std::string damaged_address() {
  std::string sealed = process::seal_address(std::string(200, 'a'));
  sealed[100] ^= 1;
  return sealed;
}

struct Offence {
  std::string name;
  std::vector<ControlMessage> messages;
  std::string reason;
};
void PrintTo(const Offence& offence, std::ostream* out) { *out << offence.name; }

std::vector<Offence> offences() {
  using Kind = NodeOutcome::Kind;
  const ControlMessage hello{Type::kHello, kImpostor, 0, 0, {}};
  const auto address = [](Rank to, const std::string& body) {
    return ControlMessage{Type::kAddress, to, 0, 0, body};
  };
  const auto result = [](const std::string& body) {
    return ControlMessage{Type::kResult, kImpostor, 0, 0, body};
  };
  const std::string noise(200, '\xff');
  return {
      {"NoAddress", {hello, address(0, noise)}, "no address"},
      {"EmptyAddress", {hello, address(0, "")}, "cut short"},
      {"DamagedAddress", {hello, address(1, damaged_address())}, "damaged"},
      {"AddressForNobody", {hello, address(7, process::seal_address(noise))}, "no peer"},
      {"AddressForAnybody", {hello, address(kAnyRank, process::seal_address(noise))}, "nobody"},
      {"AddressForItself", {hello, address(kImpostor, process::seal_address(noise))}, "no peer"},
      {"AddressFirst", {address(0, process::seal_address(noise))}, "before its hello"},
      {"ResultFirst", {result(result_of(Kind::kDone, 0, kAnyRank))}, "before its hello"},
      {"TwoHellos", {hello, hello}, "hello twice"},
      {"AnotherName", {{Type::kHello, 0, 0, 0, {}}}, "name of rank 0"},
      {"AnotherLife", {{Type::kHello, kImpostor, 3, 0, {}}}, "incarnation 3"},
      {"WindowWithoutMemory", {hello, {Type::kWindow, kImpostor, 0, 4096, {}}}, "file descriptor"},
      {"DoneWithAnError", {hello, result(result_of(Kind::kDone, 4, kAnyRank))}, "exit code 4"},
      {"UnknownExitCode", {hello, result(result_of(Kind::kFailed, 99, 0))}, "exit code 99"},
      {"UnknownLostPeer", {hello, result(result_of(Kind::kFailed, 4, 9))}, "there is not"},
      {"LauncherSpeech", {hello, {Type::kBye, kImpostor, 0, 0, {}}}, "only the launcher"},
      {"JoinAgain", {hello, {Type::kJoin, kImpostor, 0, 0, "token"}}, "join twice"},
  };
}

class ImpostorNodes : public testing::TestWithParam<Offence> {};

TEST_P(ImpostorNodes, AreBlamedForWhatTheySend) {
  const auto outcomes = run_with_impostor([](ControlSocket& control) {
    for (const ControlMessage& message : GetParam().messages) control.post(message);
    control.drain(kPatienceS);
    stay_silent(control);
  });
  expect_blamed(outcomes, GetParam().reason);
}

INSTANTIATE_TEST_SUITE_P(All, ImpostorNodes, testing::ValuesIn(offences()),
                         [](const auto& test) { return test.param.name; });

// It gives up as a node may, and then says more than a node may.
TEST(ImpostorNode, HasNothingToSayAfterItsEnd) {
  const auto outcomes = run_with_impostor([](ControlSocket& control) {
    control.post({Type::kHello, kImpostor, 0, 0, {}});
    control.post(
        {Type::kResult, kImpostor, 0, 0, result_of(NodeOutcome::Kind::kFailed, 1, kAnyRank)});
    control.post({Type::kHello, kImpostor, 0, 0, {}});
    control.drain(kPatienceS);
    stay_silent(control);
  });
  expect_honest_nodes_survive(outcomes);
  EXPECT_EQ(outcomes[kImpostor].kind, NodeOutcome::Kind::kFailed);
  EXPECT_EQ(outcomes[kImpostor].exit_code, kExitInternal);
}

// More addresses than there are peers would pile up in the launcher, for a node that computes.
TEST(ImpostorNode, AnnouncesOneAddressToAPeer) {
  const auto outcomes = run_with_impostor([](ControlSocket& control) {
    control.post({Type::kHello, kImpostor, 0, 0, {}});
    std::optional<ControlMessage> heard = hear(control);
    while (heard && heard->type != Type::kAddress) heard = hear(control);
    if (!heard) return;
    for (int i = 0; i < 2; ++i) control.post({Type::kAddress, heard->rank, 0, 0, heard->body});
    control.drain(kPatienceS);
    stay_silent(control);
  });
  expect_blamed(outcomes, "its address twice");
}

// It never gets ready, and nobody else can be: those who waited say so, and the run ends.
TEST(ImpostorNode, IsNotWaitedForForEver) {
  ProcessOptions options;
  options.timeout_s = 0.5;
  const auto outcomes = run_with_impostor(
      [&](ControlSocket& control) {
        control.post({Type::kHello, kImpostor, 0, 0, {}});
        stay_silent(control);
      },
      options);
  for (const Rank rank : {0, 1}) {
    const NodeOutcome& outcome = outcomes[static_cast<size_t>(rank)];
    EXPECT_EQ(outcome.kind, NodeOutcome::Kind::kFailed);
    EXPECT_EQ(outcome.exit_code, kExitPeerLost);
    EXPECT_NE(outcome.error.find("could not connect in time to 2"), std::string::npos)
        << outcome.error;
  }
  EXPECT_EQ(outcomes[kImpostor].kind, NodeOutcome::Kind::kLost);
  EXPECT_NE(outcomes[kImpostor].error.find("was not ready within 0.5 s"), std::string::npos)
      << outcomes[kImpostor].error;
}

// Asked to stop before anybody is ready: the honest nodes do, and the other is left behind.
TEST(ImpostorNode, CannotKeepARunFromStopping) {
  std::atomic<bool> stop{false};
  ProcessOptions options;
  options.timeout_s = 3600;
  options.stop_s = 1;
  options.welcome = [&](Rank, const std::string&) { stop = true; };
  const auto outcomes = run_with_impostor(stay_silent, options, stop);
  for (const Rank rank : {0, 1}) {
    const NodeOutcome& outcome = outcomes[static_cast<size_t>(rank)];
    EXPECT_EQ(outcome.kind, NodeOutcome::Kind::kInterrupted) << outcome.error;
    EXPECT_EQ(outcome.error, "interrupted");
  }
  EXPECT_NE(outcomes[kImpostor].error.find("did not stop within 1 s"), std::string::npos)
      << outcomes[kImpostor].error;
}

size_t peak_memory_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (size_t kib = 0; word == "VmHWM:" && status >> kib) return kib << 10;
  return 0;
}

// The first 32 bytes show that these are no frames; what follows must cost nothing.
TEST(ImpostorNode, TakesNoMemoryByTalking) {
  std::ofstream("/proc/self/clear_refs") << 5;  // the peak is counted from here on
  const size_t before = peak_memory_bytes();
  const auto outcomes = run_with_impostor([](ControlSocket& control) {
    const std::string zeros(size_t{1} << 20, '\0');
    for (int i = 0; i < 512 && say_bytes(control, zeros); ++i) {
    }
  });
  expect_blamed(outcomes, "no message");
  EXPECT_LT(peak_memory_bytes(), before + (size_t{32} << 20));
}

TEST(ImpostorNode, BabblesWithoutHarm) {
  constexpr uint64_t kRounds = 60;
  for (uint64_t seed = 1; seed <= kRounds; ++seed) {
    const auto outcomes = run_with_impostor([&](ControlSocket& control) {
      Babbler babbler(seed, 3,
                      {Type::kPing, Type::kPing, Type::kReady, Type::kAddress, Type::kAddress,
                       Type::kAddress, Type::kResult});
      if (seed % 8 != 0) control.post({Type::kHello, kImpostor, 0, 0, {}});
      for (uint64_t i = babbler.below(30); i > 0; --i) {
        if (seed % 3 != 0) babbler.listen(control, 0.005);
        ControlMessage message = babbler.next();
        // With a name of its own it gets further, and with the addresses of others too.
        const bool address = message.type == Type::kAddress;
        if (babbler.below(8) != 0)
          message.rank = address ? static_cast<Rank>(babbler.below(2)) : kImpostor;
        control.post(message);
      }
      control.drain(kPatienceS);
    });
    ASSERT_EQ(outcomes.size(), 3u);
    for (const Rank rank : {0, 1}) {
      const NodeOutcome& outcome = outcomes[static_cast<size_t>(rank)];
      EXPECT_NE(outcome.kind, NodeOutcome::Kind::kLost) << seed << ": " << outcome.error;
      EXPECT_NE(outcome.kind, NodeOutcome::Kind::kInterrupted) << seed << ": " << outcome.error;
    }
    const NodeOutcome& impostor = outcomes[kImpostor];
    if (impostor.kind == NodeOutcome::Kind::kLost) {
      EXPECT_NE(impostor.error.find("rank 2 at 127.0.0.1:"), std::string::npos) << impostor.error;
    }
  }
}

}  // namespace
}  // namespace tutti
