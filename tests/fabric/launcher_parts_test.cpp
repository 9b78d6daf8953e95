// The parts of the launcher, each without a process: what nodes hear and may say, who is silent.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "core/error.h"
#include "fabric/process/message_relay.h"
#include "fabric/process/silence.h"

namespace tutti::process {
namespace {

using Type = ControlMessage::Type;
constexpr int kFew = 3;

// Nodes that are only connections, whose other ends the test holds.
class Launched : public testing::Test {
 protected:
  Launched() {
    for (Rank rank = 0; rank < kFew; ++rank) {
      auto [ours, theirs] = control_pair();
      children[rank].joins = true;
      children[rank].control = std::make_unique<ControlSocket>(std::move(ours));
      ends.push_back(std::make_unique<ControlSocket>(std::move(theirs)));
    }
  }

  // What a node has heard since it was last asked: types and ranks.
  std::vector<std::pair<Type, Rank>> heard(Rank rank) {
    ControlSocket& end = *ends[static_cast<size_t>(rank)];
    end.fill();
    std::vector<std::pair<Type, Rank>> messages;
    while (const auto message = end.next()) messages.emplace_back(message->type, message->rank);
    return messages;
  }
  using Heard = std::vector<std::pair<Type, Rank>>;

  Board board{kFew};
  Children children{kFew};
  std::vector<std::unique_ptr<ControlSocket>> ends;
};

TEST_F(Launched, AllHearOfLossesInOneOrder) {
  MessageRelay relay(board, children);
  relay.greet(0);
  relay.greet(2);
  relay.tell_lost(2);
  relay.tell_lost(1);
  relay.tell_lost(2);  // known already
  relay.greet(1);      // which comes late, or again
  EXPECT_EQ(heard(0), (Heard{{Type::kWelcome, 0}, {Type::kLost, 2}, {Type::kLost, 1}}));
  EXPECT_EQ(heard(2), (Heard{{Type::kWelcome, 2}}));
  EXPECT_EQ(heard(1), (Heard{{Type::kWelcome, 1}, {Type::kLost, 2}}));
  children[2].incarnation = 1;
  relay.greet(2);
  EXPECT_EQ(heard(0), (Heard{{Type::kJoined, 2}}));
  EXPECT_EQ(heard(2), (Heard{{Type::kWelcome, 2}}));
}

TEST_F(Launched, NodesSayOnlyWhatIsTheirs) {
  const auto may = [&](Type type, Rank about, uint32_t incarnation) {
    try {
      check_message(children[1], 1, {type, about, incarnation, 0, {}});
      return true;
    } catch (const DataError&) {
      return false;
    }
  };
  EXPECT_TRUE(may(Type::kHello, 1, 0));
  EXPECT_FALSE(may(Type::kHello, 0, 0)) << "in the name of another";
  EXPECT_FALSE(may(Type::kHello, 1, 1)) << "as another incarnation";
  EXPECT_FALSE(may(Type::kReady, 1, 0)) << "before its hello";
  EXPECT_TRUE(may(Type::kPing, 1, 0));
  children[1].greeted = true;
  EXPECT_FALSE(may(Type::kHello, 1, 0)) << "twice";
  EXPECT_TRUE(may(Type::kReady, 1, 0));
  EXPECT_TRUE(may(Type::kAddress, 2, 0)) << "names whom it is for";
  EXPECT_TRUE(may(Type::kWindow, 1, 7)) << "counts losses instead";
  children[1].greeted = false;
  children[1].ended = true;
  EXPECT_FALSE(may(Type::kHello, 1, 0)) << "after it had given up";
}

constexpr double kPatience_s = 2;

class Silence : public Launched {
 protected:
  // Looks every half second until `until_s`; returns who was found, and when.
  std::vector<std::pair<Rank, double>> look_until(double until_s) {
    std::vector<std::pair<Rank, double>> found;
    for (; now_s < until_s; now_s += 0.5)
      for (const auto& silent : check.look(children, static_cast<int64_t>(now_s * 1e9))) {
        found.emplace_back(silent.rank, now_s);
        why = silent.why;
      }
    return found;
  }
  void hear(Rank rank) { children[rank].heard_ns = static_cast<int64_t>(now_s * 1e9); }
  using Found = std::vector<std::pair<Rank, double>>;

  SilenceCheck check{board, kPatience_s};
  double now_s = 100;
  std::string why;
};

TEST_F(Silence, IsBorneUntilSomebodyWaitsInVain) {
  EXPECT_EQ(look_until(110), Found{});
  hear(0);
  hear(1);
  check.note_given_up();
  children[2].steps = 7;
  EXPECT_EQ(look_until(111), (Found{{2, 110}}));
  EXPECT_EQ(why, "said nothing for 2 s, in step 7 by its own count");
  EXPECT_EQ(look_until(112.5), (Found{{0, 112}, {1, 112}, {2, 112}}));
  EXPECT_EQ(look_until(113), Found{}) << "each is found once";
}

TEST_F(Silence, OfTheLastOneIsNotBorne) {
  children[0].ended = children[1].ended = true;
  EXPECT_EQ(look_until(105), (Found{{2, 102}, {2, 104}}));
  EXPECT_EQ(why, "said nothing for 2 s, before its first step");
}

// A launcher that was stopped itself has not seen whether nodes spoke.
TEST_F(Silence, CountsOnlyWhileTheLauncherListens) {
  children[0].ended = children[1].ended = true;
  EXPECT_EQ(look_until(101.5), Found{});
  now_s = 200;
  EXPECT_EQ(look_until(202), Found{});
  EXPECT_EQ(look_until(202.5), (Found{{2, 202}}));
}

}  // namespace
}  // namespace tutti::process
