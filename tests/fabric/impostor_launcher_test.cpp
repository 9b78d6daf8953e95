// A launcher that does not keep to the protocol, or falls silent: a node that joined it ends with
// an error that says so, soon after its user wants it to, and never by a signal.
#include "tests/fabric/impostors.h"

namespace tutti {
namespace {

using namespace testing_support;
using process::Member;
using Type = ControlMessage::Type;

constexpr Rank kVisitor = 1;  // of three, the second and third of which join

// So that nobody waits who should not, without timing anything: these waits are far longer than the
// whole test may take, or over at once.
constexpr double kNeverS = 3600;
constexpr double kAtOnceS = 0.2;

ControlMessage accepted(double timeout_s) {
  return {Type::kAccepted, kVisitor, 0, 0,
          process::encode_invitation({{"a", "b", "c"}, {0, 1, 1}, timeout_s, "a job"})};
}

ControlMessage welcome(const std::vector<Member>& members = {{true, 0}, {true, 0}, {true, 0}}) {
  return {Type::kWelcome, kVisitor, 0, 0, process::encode_roster(members)};
}

// Nobody else is there, so that a node need not connect to anybody.
ControlMessage lonely_welcome() { return welcome({{false, 0}, {true, 0}, {false, 0}}); }

std::string wait_for_rank_0(Node& node) {
  std::byte buffer[8];
  Handle handle = node.endpoint().receive(0, Tag(Purpose::kUser, 1, 1), buffer);
  node.endpoint().wait(handle, node.timeout_s());
  return "waited";
}

// Lets the node in and hears its hello.
bool let_in(ControlSocket& control, double timeout_s = kNeverS) {
  control.post(accepted(timeout_s));
  const auto hello = hear(control);
  return hello && hello->type == Type::kHello;
}

void expect_said(const Visit& visit, int exit_code, const std::string& text) {
  EXPECT_EQ(visit.exit_code, exit_code) << visit.said;
  EXPECT_NE(visit.said.find(text), std::string::npos) << visit.said;
}

struct Lie {
  std::string name;
  std::vector<ControlMessage> messages;
  std::string reason;
};
void PrintTo(const Lie& lie, std::ostream* out) { *out << lie.name; }

std::vector<Lie> lies() {
  const auto of = [](Type type, Rank rank, uint32_t incarnation = 0, uint64_t number = 0) {
    return ControlMessage{type, rank, incarnation, number, {}};
  };
  const ControlMessage noise{Type::kAddress, 0, 0, 0, std::string(200, '\xff')};
  const ControlMessage for_nobody{Type::kAddress, 9, 0, 0, process::seal_address("address")};
  return {
      {"AddressBeforeWelcome", {noise}, "before the welcome"},
      {"LossBeforeWelcome", {of(Type::kLost, 0)}, "before the welcome"},
      {"ReturnBeforeWelcome", {of(Type::kJoined, 0)}, "before the welcome"},
      {"WindowBeforeWelcome", {of(Type::kWindow, 0)}, "can share none"},
      {"TwoWelcomes", {welcome(), welcome()}, "second welcome"},
      {"WelcomeOfOthers", {welcome({{true, 0}, {true, 0}})}, "another size"},
      {"WelcomeOfADeadNode", {welcome({{true, 0}, {false, 0}, {true, 0}})}, "without this node"},
      {"WelcomeOfAnEarlierLife", {welcome({{true, 0}, {true, 7}, {true, 0}})}, "without this node"},
      {"NoAddress", {welcome(), noise}, "no address"},
      {"AddressOfNobody", {welcome(), for_nobody}, "no peer"},
      {"LossOfNobody", {welcome(), of(Type::kLost, 3)}, "no peer"},
      {"LossOfAnybody", {welcome(), of(Type::kLost, kAnyRank)}, "nobody"},
      {"LossOfItself", {welcome(), of(Type::kLost, kVisitor)}, "no peer"},
      {"LossOfAnotherLife", {welcome(), of(Type::kLost, 0, 5)}, "was not there"},
      {"TwoLosses", {welcome(), of(Type::kLost, 0), of(Type::kLost, 0)}, "was not there"},
      {"ReturnOfNobody", {welcome(), of(Type::kJoined, 65535)}, "no peer"},
      {"ReturnOfThePresent", {welcome(), of(Type::kJoined, 0, 1)}, "was not lost"},
      {"WindowOfNobody", {welcome(), of(Type::kWindow, 9)}, "can share none"},
      {"WindowElsewhere", {welcome(), of(Type::kWindow, 0)}, "can share none"},
      {"StartLongAgo", {welcome(), of(Type::kStart, kVisitor, 0, ~uint64_t{0})}, "decades"},
      {"NodeSpeech", {welcome(), of(Type::kReady, kVisitor)}, "only nodes"},
  };
}

class ImpostorLaunchers : public testing::TestWithParam<Lie> {};

TEST_P(ImpostorLaunchers, AreNotBelieved) {
  const auto lie = [](ControlSocket& control, pid_t) {
    if (!let_in(control)) return;
    for (const ControlMessage& message : GetParam().messages) control.post(message);
    while (hear(control)) {
    }
  };
  const Visit visit = visit_impostor(lie, wait_for_rank_0);
  expect_said(visit, kExitPeerLost, "rank 1: the launcher sent what it must not");
  expect_said(visit, kExitPeerLost, GetParam().reason);
}

INSTANTIATE_TEST_SUITE_P(All, ImpostorLaunchers, testing::ValuesIn(lies()),
                         [](const auto& test) { return test.param.name; });

TEST(ImpostorLauncher, GivesNoPlaceThatThereIsNot) {
  const auto invited_by = [](const ControlMessage& message) {
    return visit_impostor(
        [&](ControlSocket& control, pid_t) {
          control.post(message);
          control.drain(kPatienceS);
          while (hear(control)) {
          }
        },
        wait_for_rank_0);
  };
  const char* const nobody = "answers as no launcher";
  ControlMessage message = accepted(kNeverS);
  for (const Rank rank : {kAnyRank, 0, 3, 65535}) {
    message.rank = rank;
    expect_said(invited_by(message), kExitPeerLost, nobody);
  }
  message.rank = kVisitor;
  message.body.resize(message.body.size() - 1);
  expect_said(invited_by(message), kExitPeerLost, nobody);
  message.body = std::string(300, '\xff');
  expect_said(invited_by(message), kExitPeerLost, nobody);
  expect_said(invited_by({Type::kBye, 0, 0, 0, {}}), kExitPeerLost, "something else");
}

TEST(ImpostorLauncher, BabblesWithoutHarm) {
  constexpr uint64_t kRounds = 60;
  for (uint64_t seed = 1; seed <= kRounds; ++seed) {
    const auto babble = [&](ControlSocket& control, pid_t) {
      Babbler babbler(seed, 3,
                      {Type::kPing, Type::kLost, Type::kJoined, Type::kAddress, Type::kAddress,
                       Type::kStart, Type::kStop, Type::kBye});
      if (!let_in(control, kAtOnceS)) return;
      if (seed % 8 != 0) control.post(seed % 3 == 0 ? lonely_welcome() : welcome());
      for (uint64_t i = babbler.below(30); i > 0; --i) {
        if (seed % 4 != 0) babbler.listen(control, 0.005);
        control.post(babbler.next());
      }
      control.drain(kPatienceS);
      shutdown(control.fd(), SHUT_WR);
      while (hear(control)) {
      }
    };
    const Visit visit = visit_impostor(babble, wait_for_rank_0);
    EXPECT_GE(visit.exit_code, 0) << "died of a signal with seed " << seed << "\n" << visit.said;
    EXPECT_NE(visit.said, "") << seed;
    EXPECT_EQ(visit.said.find("Sanitizer"), std::string::npos) << seed << "\n" << visit.said;
  }
}

// Silence, in each place where a node waits for its launcher: it gives up in time.
TEST(ImpostorLauncher, IsNotWaitedForForEver) {
  const auto until_hung_up = [](ControlSocket& control) {
    while (hear(control)) {
    }
  };
  const auto no_welcome = [&](ControlSocket& control, pid_t) {
    if (let_in(control, kAtOnceS)) until_hung_up(control);
  };
  expect_said(visit_impostor(no_welcome, wait_for_rank_0), kExitPeerLost, "gave no welcome");
  const auto no_start = [&](ControlSocket& control, pid_t) {
    if (!let_in(control, kAtOnceS)) return;
    control.post(lonely_welcome());
    while (const auto message = hear(control))
      if (message->type == Type::kResult) break;
    control.post({Type::kBye, kVisitor, 0, 0, {}});
  };
  expect_said(visit_impostor(no_start, wait_for_rank_0), kExitPeerLost, "gave no start");
  // A result larger than what the system takes in for one who does not read.
  const auto no_reader = [&](ControlSocket& control, pid_t child) {
    if (!let_in(control, kAtOnceS)) return;
    control.post(lonely_welcome());
    control.post({Type::kStart, kVisitor, 0, 0, {}});
    control.drain(kPatienceS);
    siginfo_t ended{};
    waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
  };
  const Visit unread =
      visit_impostor(no_reader, [](Node&) { return std::string(size_t{64} << 20, 'x'); });
  EXPECT_EQ(unread.exit_code, kExitPeerLost) << unread.said;
  // The node has ended and its result was read, but nothing comes of it: the launcher was stopped.
  const auto no_bye = [&](ControlSocket& control, pid_t) {
    if (!let_in(control, kAtOnceS)) return;
    control.post(lonely_welcome());
    control.post({Type::kStart, kVisitor, 0, 0, {}});
    control.drain(kPatienceS);
    until_hung_up(control);
  };
  expect_said(visit_impostor(no_bye, [](Node&) -> std::string { return "done"; }), kExitPeerLost,
              "the launcher has said nothing for 0.2 s");
}

// Its words are shown on the terminal of who joined, and not obeyed.
TEST(ImpostorLauncher, WordsAreShown) {
  const auto refuses = [](bool late) {
    return [late](ControlSocket& control, pid_t) {
      if (late && !let_in(control)) return;
      control.post({Type::kRefused, kVisitor, 0, process::kProtocol, "\x1b[2Jgo"});
      control.drain(kPatienceS);
      while (hear(control)) {
      }
    };
  };
  for (const bool late : {false, true}) {
    const Visit visit = visit_impostor(refuses(late), wait_for_rank_0);
    expect_said(visit, kExitPeerLost, "\\x1b[2Jgo");
    EXPECT_EQ(visit.said.find('\x1b'), std::string::npos);
  }
}

// The same silence without a limit, and a user who does not want to wait.
TEST(ImpostorLauncher, DoesNotKeepANodeFromItsUser) {
  const auto interrupt_and_wait = [](ControlSocket& control, pid_t child) {
    kill(child, SIGINT);
    while (hear(control)) {
    }
    control.close();
  };
  const auto no_welcome = [&](ControlSocket& control, pid_t child) {
    if (let_in(control)) interrupt_and_wait(control, child);
  };
  expect_said(visit_impostor(no_welcome, wait_for_rank_0), kExitInterrupted, "interrupted");
  const auto no_start = [&](ControlSocket& control, pid_t child) {
    if (!let_in(control)) return;
    control.post(lonely_welcome());
    if (hear(control)->type == Type::kReady) interrupt_and_wait(control, child);
  };
  expect_said(visit_impostor(no_start, wait_for_rank_0), kExitInterrupted, "interrupted");
  const auto no_bye = [&](ControlSocket& control, pid_t child) {
    if (!let_in(control)) return;
    control.post(lonely_welcome());
    control.post({Type::kStart, kVisitor, 0, 0, {}});
    while (const auto message = hear(control))
      if (message->type == Type::kResult) return interrupt_and_wait(control, child);
  };
  const auto done = [](Node&) -> std::string { return "done"; };
  expect_said(visit_impostor(no_bye, done), kExitInterrupted, "interrupted");
  // After a failure the user learns of that, not of the interruption.
  const auto failed = [](Node&) -> std::string { throw DivergedError("it diverged"); };
  expect_said(visit_impostor(no_bye, failed), kExitDiverged, "it diverged");
}

}  // namespace
}  // namespace tutti
