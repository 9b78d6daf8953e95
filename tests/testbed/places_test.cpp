// Who can be told apart: by differences over the same seeds, not by errors that all share.
#include "testbed/places.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tutti {
namespace {

Choice choice_of(const std::string& name, const std::vector<double>& times_s) {
  Choice choice;
  choice.name = name;
  choice.times_s = times_s;
  choice.step.compute = 1;
  choice.learning.steps = 100;
  choice.learning.reached = static_cast<int>(times_s.size());
  for (size_t seed = 0; seed < times_s.size(); ++seed)
    choice.learning.reached_at.emplace_back(static_cast<int>(seed), 1);
  return choice;
}

// Seeds move both alike by half, and one is always a tenth slower: that decides, although the
// intervals of the two overlap.
TEST(Places, AreDecidedBySeedsInPairs) {
  const Choice fast = choice_of("fast", {10, 15, 20}), slow = choice_of("slow", {11, 16.5, 22});
  const Difference apart = difference(slow, fast);
  EXPECT_NEAR(apart.log_ratio, std::log(1.1), 1e-9);
  EXPECT_NEAR(apart.error, 0, 1e-9);
  EXPECT_TRUE(apart.is_decided());
  const std::vector<Place> where = places({fast, slow});
  EXPECT_EQ(where[0].last, 1u);
  EXPECT_EQ(where[1].first, 2u);
}

// The mean of the differences is a tenth here too, but each seed says something else. Student's t
// for three values is 2.92, their deviation 0.2, so the error is 2.92 * 0.2 / sqrt(3) = 0.337.
TEST(Places, AreTiedWhereSeedsDisagree) {
  const Choice fast = choice_of("fast", {10, 10, 10});
  const Choice slow =
      choice_of("slow", {10 * std::exp(-0.1), 10 * std::exp(0.1), 10 * std::exp(0.3)});
  const Difference apart = difference(slow, fast);
  EXPECT_NEAR(apart.log_ratio, 0.1, 1e-9);
  EXPECT_NEAR(apart.error, 2.92 * 0.2 / std::sqrt(3), 1e-9);
  EXPECT_FALSE(apart.is_decided());
}

// The error of the model's cost moves both alike, as far as both compute.
TEST(Places, LeaveOutWhatAllShare) {
  Choice a = choice_of("a", {10, 10}), b = choice_of("b", {10.5, 10.5});
  a.cost_error = b.cost_error = 0.2;
  EXPECT_TRUE(difference(a, b).is_decided());
  b.step.compute = 0.5;  // here it moves one more than the other
  EXPECT_NEAR(difference(a, b).error, 0.1, 1e-9);
  EXPECT_FALSE(difference(a, b).is_decided());
}

// Simulated networks are known to 5.4 %: nobody is told apart by less of what is sent.
TEST(Places, AreTiedWithinTheErrorOfNetworks) {
  Choice a = choice_of("a", {10, 10}), b = choice_of("b", {10.2, 10.2});
  EXPECT_TRUE(difference(a, b).is_decided());
  a.step.compute = b.step.compute = 0;
  a.step.communicate = b.step.communicate = 1;
  EXPECT_FALSE(difference(a, b).is_decided());
}

// With one seed the spread of others stands in, but not within a class: its curve is the same.
TEST(Places, TakeTheSpreadOfOthersForASingleSeed) {
  Choice a = choice_of("a", {10}), b = choice_of("b", {10.5});
  a.lent = b.lent = Spread{.relative = 0.1, .freedom = 4};
  EXPECT_FALSE(difference(a, b).is_decided());
  a.equivalence = b.equivalence = "synchronous";
  EXPECT_TRUE(difference(a, b).is_decided());
}

// The first is tied with the second and the second with the third, but not the first with it.
TEST(Places, OverlapAlongAChain) {
  std::vector<Choice> chain;
  for (const double time_s : {10.0, 10.4, 10.8}) {
    chain.push_back(choice_of("c", {time_s, time_s}));
    chain.back().step.compute = 0;
    chain.back().step.wait = 1;
  }
  const std::vector<Place> where = places(chain);
  ASSERT_EQ(where.size(), 3u);
  EXPECT_EQ(where[0].last, 2u);
  EXPECT_EQ(where[1].first, 1u);
  EXPECT_EQ(where[1].last, 3u);
  EXPECT_EQ(where[2].first, 2u);
}

Choice of_class(const std::string& name, double time_s, const std::string& equivalence) {
  Choice choice = choice_of(name, {time_s});
  choice.equivalence = equivalence;
  choice.learning.evaluations = 1000;
  choice.lent = Spread{.relative = 0.05, .freedom = 4};
  return choice;
}

// Two share a curve, so their order is decided, although both are tied with a third one between.
TEST(Places, FollowWhatIsDecidedOfPairs) {
  const std::vector<Place> where = places(
      {of_class("ring", 10, "sgd"), of_class("local", 10.2, ""), of_class("solo", 10.5, "sgd")});
  ASSERT_EQ(where.size(), 3u);
  EXPECT_EQ(where[0].first, 1u);
  EXPECT_EQ(where[0].last, 2u) << "solo is surely behind";
  EXPECT_EQ(where[1].first, 1u);
  EXPECT_EQ(where[1].last, 3u);
  EXPECT_EQ(where[2].first, 2u) << "ring is surely before";
  EXPECT_EQ(where[2].last, 3u);
}

// A chain of ties does not reach from the one end to the other.
TEST(Places, OfManyTiesAreNotAllThereAre) {
  std::vector<Choice> chain;
  for (int i = 0; i < 30; ++i) chain.push_back(of_class("c", 10 * std::pow(1.05, i), ""));
  const std::vector<Place> where = places(chain);
  EXPECT_EQ(where.front().first, 1u);
  EXPECT_LT(where.front().last, 10u);
  EXPECT_GT(where.back().first, 20u);
}

// However fast: who misses the target with a seed has only reached it now and then.
TEST(Places, ComeAfterAllThatAlwaysReachTheTarget) {
  std::vector<Choice> choices = {choice_of("steady", {20, 20, 20}), choice_of("misses", {10, 10})};
  choices[0].learning.runs = choices[1].learning.runs = 3;
  rank(choices);
  EXPECT_EQ(choices[0].name, "steady");
  const std::vector<Place> where = places(choices);
  EXPECT_EQ(where[0].last, 1u);
  EXPECT_EQ(where[1].first, 2u);
}

// Of what is as good the simplest comes first, but nothing that is known to be slower.
TEST(Places, HaveSoloBeforeWhatIsAsGood) {
  const auto first_of = [](double solo_s, double deviation) {
    std::vector<Choice> ranked = {choice_of("fedavg", {10, 10 * (1 + deviation)}),
                                  choice_of("solo", {solo_s * (1 + deviation), solo_s})};
    ranked[1].job.strategy_kind = "solo";
    prefer_solo(ranked);
    return ranked[0].name;
  };
  EXPECT_EQ(first_of(10.05, 0.01), "solo");
  EXPECT_EQ(first_of(10.5, 0.1), "fedavg") << "more than 1 % longer";
  EXPECT_EQ(first_of(10.05, 0), "fedavg") << "surely slower";
}

TEST(Places, AreOfJudgedChoicesAlone) {
  std::vector<Choice> choices = {choice_of("a", {10}), choice_of("b", {9}), choice_of("c", {8})};
  choices[1].assumed = "it learns like a";
  choices[2].fits = false;
  rank(choices);
  EXPECT_EQ(choices[0].name, "a");
  EXPECT_EQ(choices[1].name, "b");
  EXPECT_EQ(places(choices).size(), 1u);
}

}  // namespace
}  // namespace tutti
