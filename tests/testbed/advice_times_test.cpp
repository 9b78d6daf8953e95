// The times that advice gives are those of whole runs: every variant of the catalog, reference
// tasks and clusters that come with the program, costs only, and the same number of steps. Advice
// may simulate a part alone of each run; the whole run has a seed of its own. Nine of ten should
// lie in an interval of 90 %; most are much better known than that, so 95 of 100 are asked for.
//
// Simulated times are held against simulated ones, so the error of simulated networks against real
// ones is left out. TUTTI_THOROUGH=1 tries all tasks whose data is here on all clusters.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iostream>

#include "core/error.h"
#include "core/isolated_run.h"
#include "testbed/choice.h"
#include "testbed/clusters.h"
#include "testbed/cost_run.h"
#include "testbed/run_simulation.h"
#include "testbed/time_to_target.h"
#include "testbed/variants.h"
#include "tests/support/jobs.h"
#include "tests/support/thorough.h"

namespace tutti {
namespace {

using namespace testing_support;

const std::atomic<bool> never{false};
constexpr int kSeeds = 3;             // of the advice
constexpr uint64_t kOtherSeed = 100;  // of the whole run, beyond the task's

struct Case {
  double off = 0;   // of the advice, relative to what it says
  double half = 0;  // of the width of its interval

  bool held() const { return std::abs(off) <= half + 1e-6; }  // times are long sums: rounding
};

// Says when a run is at its evaluation number `evaluation`, as advice does.
Choice advised(const ComparedJob& candidate, int64_t evaluation, double steps, double share,
               const Data& data) {
  Choice choice;
  choice.learning.evaluations = static_cast<double>(evaluation);
  choice.learning.steps = steps;
  choice.learning.reached = kSeeds;
  for (int seed = 0; seed < kSeeds; ++seed)
    choice.learning.reached_at.emplace_back(seed, evaluation);
  double effort = 0;
  for (const NodePlan& node : candidate.plan.nodes) effort += 1 + node.messages;
  const TimesToTarget found = times_to_target(candidate.job, candidate.plan, choice.learning, data,
                                              share * effort * steps, never);
  choice.times_s = found.times_s;
  choice.simulation_error = found.error;
  return choice;
}

// Advice that may simulate these shares of what the run takes, against the run.
constexpr std::array kShares = {0.5, 0.15};

std::array<Case, kShares.size()> examine(const ComparedJob& candidate, const Data& data) {
  Job whole = candidate.job;
  whole.task.seed += kOtherSeed;
  const std::vector<EvaluationRow> rows = run_costs(whole, data, never).evaluations;
  // At the last evaluation but one, so that no end of a run is in it.
  const int64_t evaluation = std::max<int64_t>(1, std::ssize(rows) - 1);
  const EvaluationRow& row = rows[static_cast<size_t>(evaluation - 1)];
  std::array<Case, kShares.size()> cases;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Choice choice =
        advised(candidate, evaluation, static_cast<double>(row.step), kShares[i], data);
    // Where all seeds take the same time, nothing but its simulation makes it uncertain: the
    // evaluation at which the target is noticed is given here.
    const Spread spread = *spread_of(choice.times_s);
    cases[i].off = row.time_s / choice.time_s() - 1;
    cases[i].half = std::hypot(half_width_of_next(spread, kSeeds, 0), choice.errors().simulation);
  }
  return cases;
}

struct Place {
  std::string task, cluster;
  bool arithmetic = true;  // strategies whose messages depend on values, too
};

std::vector<Place> places() {
  const std::vector<std::string> clusters = {"rack-1g", "stragglers", "heterogeneous", "two-racks",
                                             "edge-wan"};
  const std::vector<std::string> small = {"clicks-heart", "tabular-mushroom", "anomaly-thyroid",
                                          "regression-abalone"};
  const std::vector<std::string> large = {"image-fashion", "language-kjv", "timeseries-weather",
                                          "image-cifar10"};
  std::vector<Place> all;
  const size_t few = seeds(3, 0);
  for (size_t i = 0; i < few; ++i) all.push_back({small[i], clusters[i]});
  if (few > 0) return all;
  for (const std::string& cluster : clusters) {
    for (const std::string& task : small) all.push_back({task, cluster});
    for (const std::string& task : large) all.push_back({task, cluster, false});
  }
  return all;
}

bool is_of_costs(Job job, const Data& data) {
  job.cluster.cost_only = true;
  try {
    resolve(job, data);
  } catch (const ConfigError&) {
    return false;
  }
  return true;
}

struct Cases {
  std::vector<Case> all;
  std::string said;  // of those outside of their intervals
};

Cases cases_of(const Place& place, const std::vector<std::string>& strategies) {
  Cases result;
  Job base = load_job(TUTTI_SOURCE "/recipes/tasks/" + place.task + ".toml", {});
  base.cluster = load_cluster(place.cluster);
  Job alone = with_settings(base, {"strategy={ kind = \"solo\" }"});
  alone.strategy->fit(alone.cluster);
  Data data;
  try {
    data = resolve(alone).data;
  } catch (const Error& error) {
    result.said = fmt::format("{} is left out: {}\n", place.task, error.what());
    return result;
  }
  std::vector<ComparedJob> candidates = compared_jobs(base, strategies, Memory::kMayBeShort);
  std::erase_if(candidates, [&](const ComparedJob& each) {
    return !each.refusal.empty() || (!place.arithmetic && !is_of_costs(each.job, data));
  });
  std::vector<IsolatedWork> works;
  for (const ComparedJob& candidate : candidates)
    works.push_back([&](const std::atomic<bool>&) {
      const auto cases = examine(candidate, data);
      return std::string(reinterpret_cast<const char*>(cases.data()), sizeof cases);
    });
  const std::vector<std::string> replies = run_side_by_side(
      "case", works, [](size_t) {}, never);
  for (size_t i = 0; i < candidates.size(); ++i) {
    std::array<Case, kShares.size()> cases;
    TUTTI_CHECK(replies[i].size() == sizeof cases);
    std::memcpy(cases.data(), replies[i].data(), sizeof cases);
    for (size_t k = 0; k < cases.size(); ++k) {
      result.all.push_back(cases[k]);
      if (!cases[k].held())
        result.said +=
            fmt::format("{} on {}, {}, {:.0f} % of it simulated: off by {:+.2f} %, said {:.2f} %\n",
                        place.task, place.cluster, candidates[i].job.name, 100 * kShares[k],
                        100 * cases[k].off, 100 * cases[k].half);
    }
  }
  return result;
}

TEST(AdviceTimes, AreThoseOfWholeRuns) {
  std::vector<Case> all;
  for (const Place& place : places()) {
    const Cases cases = cases_of(place, {"all"});
    all.insert(all.end(), cases.all.begin(), cases.all.end());
    std::cout << cases.said << std::flush;
  }
  ASSERT_GT(all.size(), 100u);
  const auto held = std::count_if(all.begin(), all.end(), [](const Case& c) { return c.held(); });
  const double share = static_cast<double>(held) / static_cast<double>(all.size());
  std::sort(all.begin(), all.end(), [](const Case& a, const Case& b) { return a.half < b.half; });
  const auto half_of = [&](double part) {
    return all[static_cast<size_t>(part * static_cast<double>(all.size()))].half;
  };
  std::cout << fmt::format(
      "{} of {} times lie in their intervals ({:.1f} %); half of an interval is {:.2f} % in the "
      "middle, {:.1f} % in 90 of 100\n",
      held, all.size(), 100 * share, 100 * half_of(0.5), 100 * half_of(0.9));
  EXPECT_GE(share, 0.95);
  // An interval that says nothing holds everything.
  EXPECT_LT(half_of(0.5), 0.05);
  EXPECT_LT(half_of(0.9), 0.4);
}

// An evaluation is due every 29 steps and comes with the next average, after 16, 32, 48 and so on:
// most are 32 steps apart, but not all. Taken to be 32, the time is 6 % off.
TEST(AdviceTimes, GoOnByStepsAndNotByEvaluations) {
  const Cases cases = cases_of({"tabular-mushroom", "rack-1g"}, {"local-sgd-16"});
  ASSERT_EQ(cases.all.size(), kShares.size());
  EXPECT_NEAR(cases.all[0].off, 0, 0.01);
}

// Steps 10 s in all were simulated, of 2 s between evaluations.
TEST(SimulatedRun, GoesOnAsItBegan) {
  SimulatedRun run{.evaluated_s = {3, 6, 9}, .steps_each = 10};
  run.end_s = 9;
  run.end_step = 30;
  run.end_count = 3;
  run.step_s = 0.2;
  run.evaluation_s = 1;
  EXPECT_EQ(run.when(2), 6);
  EXPECT_DOUBLE_EQ(run.when(5), 9 + 20 * 0.2 + 2 * 1);
  EXPECT_EQ(run.error(3), 0);
  EXPECT_EQ(run.error(5), 0);  // as nothing differed
  run.wander_s = 0.5;
  run.freedom = 2;
  EXPECT_DOUBLE_EQ(run.error(4), 2.920 * 0.5 / run.when(4));
  run.step_off_s = 0.1;
  EXPECT_DOUBLE_EQ(run.error(4), 2.920 * std::hypot(0.5, 10 * 0.1) / run.when(4));
  EXPECT_GT(run.error(400), run.error(40));  // what the step is off goes with the steps
}

// The one that measures is eight times as fast as the others and waits for nobody, so more of its
// steps lie between two evaluations than the plan has.
TEST(SimulatedRun, GoesOnByTimeWhereStepsAreOthersThanPlanned) {
  const Job job = load_job(
      "", logistic_task() +
              Settings{"cluster.fabric=virtual", "cluster.workers=4", "cluster.speed=10 MFLOP/s",
                       "cluster.speed_factors=[8, 1, 1, 1]", "cluster.step_overhead=0",
                       "cluster.layer_overhead=0", "task.epochs=16", "task.eval_every=1",
                       "strategy={ kind = \"gossip\", graph = \"complete\", mode = \"async\" }"});
  const Resolved resolved = resolve(job);
  const RunQuestion question{.job = resolved.job,
                             .steps_each = static_cast<double>(resolved.plan.steps) / 16,
                             .evaluations = 15,
                             .effort_of_step = 1};
  const SimulatedRun run = simulate_run(question, resolved.data, 1, never);
  const std::vector<EvaluationRow> rows = run_costs(resolved.job, resolved.data, never).evaluations;
  ASSERT_LT(std::ssize(run.evaluated_s), std::ssize(rows) - 1);
  for (int64_t i = 1; i < std::ssize(rows); ++i)
    EXPECT_NEAR(run.when(i) / rows[static_cast<size_t>(i - 1)].time_s, 1, 0.2) << i;
  RunQuestion fewer_steps = question;
  fewer_steps.steps_each /= 3;
  const SimulatedRun other = simulate_run(fewer_steps, resolved.data, 1, never);
  for (int64_t i = 1; i < question.evaluations; ++i)
    EXPECT_LT(other.when(i), other.when(i + 1)) << i;
}

}  // namespace
}  // namespace tutti
