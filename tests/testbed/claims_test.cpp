// What a comparison claims, and when a claim is confirmed.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/described_json.h"
#include "core/error.h"
#include "testbed/claim_check.h"

namespace tutti {
namespace {

OverSeeds over(const std::vector<std::optional<double>>& values) {
  return olympic_statistic(values);
}

ComparedStrategy row(const std::string& name, const std::vector<std::optional<double>>& times) {
  ComparedStrategy row;
  row.name = name;
  row.status = "done";
  row.obtained = "simulated";
  for (size_t i = 0; i < times.size(); ++i) {
    row.seeds.push_back(i + 1);
    row.statuses.emplace_back("done");
  }
  row.to_target_s = row.steps_to_target = over(times);
  row.reached = std::count_if(times.begin(), times.end(), [](const auto& t) { return bool{t}; });
  const std::vector<std::optional<double>> all(times.size(), 100.0);
  row.total_s = row.bytes_total = row.messages_total = row.steps = row.energy_j = over(all);
  row.quality.final_test = row.quality.validation_best =
      statistic(std::vector<std::optional<double>>(times.size(), 0.9));
  for (size_t i = 0; i < times.size(); ++i) {
    RecordedEvaluation point;
    point.step = 10;
    point.time_s = 5;
    point.quality = 0.8;
    row.curves.push_back({i + 1, {point, point}});
  }
  return row;
}

Comparison comparison(std::vector<ComparedStrategy> rows) {
  Comparison made;
  made.task.target = 0.6;
  made.task.metric = "accuracy";
  made.job = "[task]\ndata = { kind = \"synthetic-classes\" }\nmodel = \"logistic\"\n";
  made.strategies = std::move(rows);
  made.machine = Machine{"a processor", 2, 1000, "6.1"};
  made.versions = Versions{"0.1.0", "1.13", "3.32", "1.13", "12", 90100};
  return made;
}

const Claim& claim_of(const Claims& claims, ClaimKind kind, const std::string& strategy) {
  for (const Claim& claim : claims.claims)
    if (claim.kind == kind && claim.strategy == strategy) return claim;
  throw Error("there is no claim of " + std::string(word_of(kind)) + " about " + strategy);
}

size_t orders_in(const Comparison& comparison) {
  const Claims claims = claims_of(comparison);
  return static_cast<size_t>(
      std::count_if(claims.claims.begin(), claims.claims.end(),
                    [](const Claim& claim) { return claim.kind == ClaimKind::kOrder; }));
}

TEST(Claims, OrderIsClaimedBeyondTheSpreadOfTheSeeds) {
  EXPECT_EQ(orders_in(comparison({row("a", {1, 2, 3}), row("b", {4, 5, 6})})), 1u);
  EXPECT_EQ(orders_in(comparison({row("b", {4, 5, 6}), row("a", {1, 2, 3})})), 1u);
  EXPECT_EQ(orders_in(comparison({row("a", {1, 2, 4.5}), row("b", {4, 5, 6})})), 0u);
  // What was not reached has no time, and one seed does not say how much seeds differ.
  EXPECT_EQ(orders_in(comparison({row("a", {1, 2, {}}), row("b", {4, 5, 6})})), 0u);
  EXPECT_EQ(orders_in(comparison({row("a", {95}), row("b", {100})})), 0u);
  EXPECT_EQ(orders_in(comparison({row("a", {85}), row("b", {100})})), 1u);
  // Simulated and measured times are never in one order.
  ComparedStrategy measured = row("b", {4, 5, 6});
  measured.obtained = "measured";
  EXPECT_EQ(orders_in(comparison({row("a", {1, 2, 3}), measured})), 0u);
}

TEST(Claims, AreReadAsTheyWereWritten) {
  const Claims claims = claims_of(comparison({row("a", {1, 2, 3}), row("b", {4, {}, 6})}));
  EXPECT_EQ(json_of(described_by<Claims>(json_of(claims))), json_of(claims));
  for (const Claim& claim : claims.claims) EXPECT_FALSE(claim.text.empty());
  EXPECT_EQ(claim_of(claims, ClaimKind::kOutcome, "b").text,
            "b: 3 done of 3 seeds; 2 reached the target");
}

TEST(Claims, MeansThatDoNotFollowAreAContradiction) {
  Comparison made = comparison({row("a", {1, 2, 3})});
  EXPECT_EQ(contradiction_in(made), "");
  made.strategies[0].to_target_s->mean = 1;
  EXPECT_EQ(contradiction_in(made),
            "to_target_s of a does not follow from the values of its seeds");
  made = comparison({row("a", {1, 2, {}})});
  made.strategies[0].reached = 3;
  EXPECT_EQ(contradiction_in(made), "reached of a does not follow from its steps_to_target");
}

// The verdict on a claim of `there` when `change` was made to what is found here.
template <class F>
CheckedClaim checked(ClaimKind kind, bool same, const F& change) {
  const Comparison there = comparison({row("a", {1, 2, 3}), row("b", {4, 5, 6})});
  Comparison here = there;
  change(here);
  return check_claim(claim_of(claims_of(there), kind, "a"), {there, here, same});
}
template <class F>
std::string_view verdict(ClaimKind kind, bool same, const F& change) {
  return word_of(checked(kind, same, change).verdict);
}

TEST(ClaimCheck, EqualFiguresConfirmEverything) {
  for (const ClaimKind kind :
       {ClaimKind::kOrder, ClaimKind::kOutcome, ClaimKind::kTimeToTarget, ClaimKind::kQuality,
        ClaimKind::kTime, ClaimKind::kTraffic, ClaimKind::kEnergy, ClaimKind::kCurve})
    for (const bool same : {true, false})
      EXPECT_EQ(verdict(kind, same, [](Comparison&) {}), "confirmed") << word_of(kind);
}

TEST(ClaimCheck, CostsOfSimulationsMustBeEqualEverywhere) {
  const auto one_byte = [](Comparison& here) { here.strategies[0].bytes_total->values[1] = 101; };
  EXPECT_EQ(verdict(ClaimKind::kTraffic, true, one_byte), "not confirmed");
  EXPECT_EQ(verdict(ClaimKind::kTraffic, false, one_byte), "not confirmed");
  const CheckedClaim found = checked(ClaimKind::kTraffic, false, one_byte);
  EXPECT_EQ(found.finding, "Bytes that all nodes sent: 101 here, 100 there, +1.00 %");
  EXPECT_DOUBLE_EQ(*found.difference, 0.01);
}

TEST(ClaimCheck, WhatGradientsDecideHasAToleranceElsewhereAlone) {
  const auto slower = [](double factor) {
    return [=](Comparison& here) {
      for (auto& value : here.strategies[0].to_target_s->values) *value *= factor;
    };
  };
  EXPECT_EQ(verdict(ClaimKind::kTimeToTarget, true, slower(1.001)), "not confirmed");
  EXPECT_EQ(verdict(ClaimKind::kTimeToTarget, false, slower(1.05)), "confirmed");
  EXPECT_EQ(verdict(ClaimKind::kTimeToTarget, false, slower(3)), "not confirmed");
  const auto worse = [](double by) {
    return [=](Comparison& here) {
      for (auto& value : here.strategies[0].quality.final_test->values) *value -= by;
    };
  };
  EXPECT_EQ(verdict(ClaimKind::kQuality, true, worse(0.001)), "not confirmed");
  EXPECT_EQ(verdict(ClaimKind::kQuality, false, worse(0.01)), "confirmed");
  EXPECT_EQ(verdict(ClaimKind::kQuality, false, worse(0.03)), "not confirmed");
  const auto curve = [](double by) {
    return [=](Comparison& here) { *here.strategies[0].curves[0].points[1].quality -= by; };
  };
  EXPECT_EQ(verdict(ClaimKind::kCurve, true, curve(0.001)), "not confirmed");
  EXPECT_EQ(verdict(ClaimKind::kCurve, false, curve(0.01)), "confirmed");
  EXPECT_EQ(verdict(ClaimKind::kCurve, false, curve(0.5)), "not confirmed");
}

TEST(ClaimCheck, OrderAndOutcomeMustBeFoundAgain) {
  const auto turned = [](Comparison& here) {
    for (auto& value : here.strategies[0].to_target_s->values) *value += 10;
  };
  EXPECT_EQ(verdict(ClaimKind::kOrder, false, turned), "not confirmed");
  // 36 s against 15 s here, 6 s against 15 s there.
  EXPECT_EQ(checked(ClaimKind::kOrder, false, turned).finding,
            "behind by 140.0 % here, ahead by 60.0 % there");
  const auto missed = [](Comparison& here) {
    here.strategies[0].steps_to_target->values[0].reset();
  };
  EXPECT_EQ(verdict(ClaimKind::kOutcome, true, missed), "not confirmed");
  EXPECT_EQ(verdict(ClaimKind::kOutcome, false, missed), "not confirmed");
  const auto diverged = [](Comparison& here) { here.strategies[0].statuses[2] = "diverged"; };
  EXPECT_EQ(verdict(ClaimKind::kOutcome, false, diverged), "not confirmed");
}

TEST(ClaimCheck, WhatWasNotRunIsNotChecked) {
  const auto no_row = [](Comparison& here) { here.strategies.erase(here.strategies.begin()); };
  EXPECT_EQ(verdict(ClaimKind::kTraffic, true, no_row), "not checked");
  const auto no_second = [](Comparison& here) { here.strategies.pop_back(); };
  EXPECT_EQ(verdict(ClaimKind::kOrder, true, no_second), "not checked");
  const auto no_time = [](Comparison& here) {
    for (std::string& status : here.strategies[0].statuses) status = "interrupted";
  };
  EXPECT_EQ(verdict(ClaimKind::kQuality, true, no_time), "not checked");
  // One seed of three is enough, and the others do not count.
  const auto one_seed = [](Comparison& here) {
    ComparedStrategy& first = here.strategies[0];
    first.statuses[0] = first.statuses[2] = "interrupted";
    first.bytes_total->values[0] = first.bytes_total->values[2] = std::nullopt;
  };
  EXPECT_EQ(verdict(ClaimKind::kTraffic, true, one_seed), "confirmed");
}

TEST(ClaimCheck, AnotherProcessorOrVersionIsAnotherArithmetic) {
  const Comparison there = comparison({row("a", {1})});
  Comparison here = there;
  EXPECT_TRUE(same_arithmetic(there, here));
  here.machine->kernel = "6.2";
  EXPECT_TRUE(same_arithmetic(there, here));
  here.machine->cpu = "another";
  EXPECT_FALSE(same_arithmetic(there, here));
  here = there;
  here.versions->libtorch = "2.0";
  EXPECT_FALSE(same_arithmetic(there, here));
}

}  // namespace
}  // namespace tutti
