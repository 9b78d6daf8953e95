// What --tune asks for: the values it tries, and what it refuses with which remedy.
#include "testbed/tuning.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "tests/support/jobs.h"

namespace tutti {
namespace {

using namespace testing_support;

std::string refusal(const std::string& text, std::optional<int64_t> budget = std::nullopt) {
  try {
    parse_tuning(text, budget);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Tuning, ARangeHasItsEndsAndAsManyValuesAsTheBudget) {
  const Tuning log = parse_tuning("optimizer.lr=log:0.003:0.3", 5);
  EXPECT_EQ(log.key, "optimizer.lr");
  EXPECT_EQ(log.values, (std::vector<double>{0.003, 0.00949, 0.03, 0.0949, 0.3}));
  EXPECT_EQ(parse_tuning("optimizer.lr=log:0.003:0.3", std::nullopt).values.size(), 6u);
  EXPECT_EQ(parse_tuning("optimizer.lr=lin:0:4", 3).values, (std::vector<double>{0, 2, 4}));
  EXPECT_EQ(parse_tuning("optimizer.lr=log:0.00012345:0.1", 2).values.front(), 0.00012345)
      << "ends are taken as they are given";
}

TEST(Tuning, AListIsItsOwnBudget) {
  EXPECT_EQ(parse_tuning("strategy.sync_every=16,2,4", std::nullopt).values,
            (std::vector<double>{2, 4, 16}));
  EXPECT_EQ(parse_tuning("strategy.sync_every=16,2,4", 3).values.size(), 3u);
  EXPECT_TRUE(has(refusal("strategy.sync_every=16,2,4", 6), "has 3 values"))
      << "whom would it favour?";
}

TEST(Tuning, WhatCannotBeSearchedIsRefusedWithARemedy) {
  EXPECT_TRUE(has(refusal("optimizer.lr"), "write e.g. --tune optimizer.lr=log:0.003:0.3"));
  EXPECT_TRUE(has(refusal("optimizer.lr="), "no range"));
  EXPECT_TRUE(has(refusal("optimizer.lr=log:0.3:0.003"), "write the smaller end first"));
  EXPECT_TRUE(has(refusal("optimizer.lr=lin:1:1"), "nothing between 1 and 1"));
  EXPECT_TRUE(has(refusal("optimizer.lr=log:-1:1"), "take lin"));
  EXPECT_TRUE(has(refusal("optimizer.lr=log:0:1"), "ends above 0"));
  EXPECT_TRUE(has(refusal("optimizer.lr=log:0.1"), "has two ends"));
  EXPECT_TRUE(has(refusal("optimizer.lr=0.1,fast"), "'fast' is not a number"));
  EXPECT_TRUE(has(refusal("optimizer.lr=0.1,0.1"), "the same value"));
  EXPECT_TRUE(has(refusal("optimizer.lr=log:1:1.001", 6), "widen the range"));
  EXPECT_TRUE(has(refusal("optimizer.lr=log:1:2", 1), "at least 2"));
  EXPECT_TRUE(has(refusal("optimizer.lr=log:1:2", 0), "1 to 1000"));
  EXPECT_TRUE(has(refusal("task.epochs=1,2"), "the same for all that are compared"));
}

std::string refusal_of(const std::string& tuning, const std::vector<std::string>& strategies,
                       const std::vector<uint64_t>& seeds = {1},
                       const std::string& setting = "cluster.workers=4") {
  const Job job = load_job("", logistic_task() + Settings{"cluster.fabric=virtual", setting});
  try {
    validate(parse_tuning(tuning, std::nullopt), compared_jobs(job, strategies), seeds);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Tuning, ASettingThatAStrategyLacksNamesThoseThatHaveIt) {
  EXPECT_EQ(refusal_of("strategy.sync_every=2,4", {"local-sgd-16"}), "accepted");
  const std::string some = refusal_of("strategy.sync_every=2,4", {"ring", "local-sgd-16"});
  EXPECT_TRUE(has(some, "ring cannot take it")) << some;
  EXPECT_TRUE(has(some, "--strategies local-sgd-16")) << some;
  const std::string none = refusal_of("optimizer.rat=0.1,0.2", {"ring"});
  EXPECT_TRUE(has(none, "did you mean")) << none;
  EXPECT_TRUE(has(none, "tutti list settings")) << none;
  EXPECT_TRUE(has(refusal_of("optimizer.lr=0,0.2", {"ring"}), "must be more than 0"));
}

TEST(Tuning, TheSeedOfTheTrialsDoesNotCount) {
  EXPECT_TRUE(has(refusal_of("optimizer.lr=0.1,0.2", {"ring"}, {1, kTrialSeed}),
                  "must not count; choose another"));
}

TEST(Tuning, WithoutGradientsNothingCanBeFound) {
  EXPECT_TRUE(has(refusal_of("optimizer.lr=0.1,0.2", {"ring"}, {1}, "cluster.cost_only=true"),
                  "computes no gradients"));
}

// Runs as they would be found in their folders: `seconds` to the target, or none.
struct TrialOutcome {
  std::optional<double> to_target_s;
  double quality;
  const char* status = "done";
};

std::vector<std::optional<ComparedTuning>> tuned(std::vector<ComparedJob>& compared,
                                                 const std::vector<TrialOutcome>& outcomes) {
  return tune(compared, parse_tuning("optimizer.lr=0.1,0.2,0.3", std::nullopt), true,
              [&](const std::vector<PlannedRun>& plan) {
                std::vector<RunFiles> files;
                for (const PlannedRun& run : plan) {
                  EXPECT_EQ(run.job.task.seed, kTrialSeed);
                  const auto i = static_cast<size_t>(std::lround(10 * run.job.optimizer.lr)) - 1;
                  RunFiles result;
                  result.record.status = outcomes[i].status;
                  result.record.time.to_target_s = outcomes[i].to_target_s;
                  result.record.time.total_s = 2;
                  result.record.energy.joules = 5;
                  result.record.quality.last = outcomes[i].quality;
                  files.push_back(result);
                }
                return files;
              });
}

TEST(Tuning, TheBestIsWhatTheComparisonWouldPutFirst) {
  const Job job = load_job("", logistic_task() + Settings{"cluster.fabric=virtual"});
  const auto best = [&](const std::vector<TrialOutcome>& outcomes) {
    std::vector<ComparedJob> compared = compared_jobs(job, {"ring", "gossip-ring"});
    const auto found = tuned(compared, outcomes);
    for (const ComparedJob& each : compared) EXPECT_EQ(each.job.optimizer.lr, found[0]->value);
    EXPECT_EQ(found[0]->value, found[1]->value) << "here both learn alike";
    EXPECT_EQ(found[0]->trials.size(), 3u);
    EXPECT_EQ(found[0]->total_s, 6);
    EXPECT_EQ(found[0]->energy_j, 15);
    EXPECT_EQ(found[0]->at_edge, found[0]->value != 0.2);
    return found[0]->value;
  };
  EXPECT_EQ(best({{3, 0.9}, {2, 0.8}, {4, 0.95}}), 0.2) << "the least time to the target";
  EXPECT_EQ(best({{3, 0.8}, {3, 0.8}, {3, 0.9}}), 0.3) << "of equal times, the best quality";
  EXPECT_EQ(best({{std::nullopt, 0.99}, {9, 0.8}, {std::nullopt, 0.7}}), 0.2) << "target first";
  EXPECT_EQ(best({{std::nullopt, 0.5}, {std::nullopt, 0.6}, {std::nullopt, 0.55}}), 0.2);
  EXPECT_EQ(best({{1, 0.9, "collapsed"}, {5, 0.8}, {1, 0.9, "diverged"}}), 0.2);
}

}  // namespace
}  // namespace tutti
