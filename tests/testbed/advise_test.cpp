// Advice: predicted times are those of the full simulation, the reasons name what is true, and the
// questions beyond the ranking are answered as theory says.
#include "testbed/advise.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/described_json.h"
#include "core/error.h"
#include "jobs/launcher.h"
#include "jobs/resolve.h"
#include "jobs/task_identity.h"
#include "testbed/choice.h"
#include "testbed/clusters.h"
#include "testbed/learning_cache.h"
#include "testbed/time_to_target.h"
#include "testbed/variants.h"
#include "testbed/what_if.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;
using nlohmann::json;

const std::atomic<bool> never{false};
const Announce silent = [](const std::string&) {};

Job simulated_job(const Settings& more) {
  return load_job(
      "", logistic_task() +
              Settings{"cluster.fabric=virtual", "cluster.workers=4", "strategy.kind=allreduce"} +
              more);
}

// Three workers of speed 1 and one of 1/2 take 4/7 of the time that equal shares take. Of 57
// samples in the slow one's share half a sample is rounded, below 1 %; messages take hardly any
// time.
TEST(StepSimulation, MeasuresSharesThatHaveSettled) {
  const Settings cluster = {
      "task.data.samples=4000",  "task.global_batch=405",
      "cluster.step_overhead=0", "cluster.layer_overhead=0",
      "cluster.speed=1 MFLOP/s", "cluster.bandwidth=100 Gbit/s",
      "cluster.latency=1 us",    "cluster.stragglers=[{kind=\"constant\", node=2, factor=2}]"};
  Job equal = simulated_job(cluster);
  Job balanced = simulated_job(cluster + Settings{"strategy.balance=true"});
  const Resolved resolved = resolve(equal);
  const StepFigures slow = simulate_steps(equal, resolved.data, never);
  const StepFigures fast = simulate_steps(balanced, resolved.data, never);
  EXPECT_NEAR(fast.step_s / slow.step_s, 4.0 / 7, 0.02);
}

// Ring: each node sends 2 (n - 1) / n of the parameters, and receives as much.
TEST(StepSimulation, FindsTheBusiestLink) {
  Job job = simulated_job({"strategy.topology=ring", "cluster.bandwidth=100 kB/s",
                           "cluster.latency=0", "cluster.speed=1 TFLOP/s",
                           "cluster.step_overhead=0", "cluster.layer_overhead=0"});
  const Resolved resolved = resolve(job);
  const StepFigures ring = simulate_steps(job, resolved.data, never);
  const double bytes = 2.0 * 3 / 4 * static_cast<double>(resolved.architecture.parameter_count) * 4;
  EXPECT_NEAR(ring.bytes, bytes, 8);  // shares differ by a value
  EXPECT_EQ(ring.messages, 6);
  EXPECT_GT(ring.busiest_link, 0.9);  // nothing but bytes takes time here
  EXPECT_LE(ring.busiest_link, 1.0001);
}

TEST(StepSimulation, SpreadsOverTheSeedsOfStragglers) {
  Job job = simulated_job({"strategy.topology=ring"});
  const Resolved resolved = resolve(job);
  EXPECT_EQ(simulate_steps(job, resolved.data, never).step_error, 0);
  StragglerConfig straggler;
  straggler.kind = StragglerKind::kRandom;
  straggler.factor = 1000;
  straggler.probability = 0.05;
  job.cluster.stragglers = {straggler};
  const StepFigures figures = simulate_steps(job, resolved.data, never);
  EXPECT_GT(figures.step_error, 0);
  EXPECT_LT(figures.step_error, 1);
}

TEST(BatchCurve, RecoversItsOwnParameters) {
  std::vector<std::pair<double, double>> points;
  for (const double batch : {16.0, 32.0, 64.0, 128.0, 256.0})
    points.emplace_back(batch, 100 * (1 + 80 / batch));
  const BatchCurve curve = fit_batch_curve(points);
  ASSERT_TRUE(curve.valid());
  EXPECT_NEAR(curve.least_steps, 100, 1e-9);
  EXPECT_NEAR(curve.critical_batch, 80, 1e-9);
  EXPECT_NEAR(curve.steps(80), 200, 1e-9);
}

TEST(BatchCurve, SaysNothingWhereNothingFollows) {
  EXPECT_FALSE(fit_batch_curve({{16, 100}, {32, 60}}).valid());             // too few
  EXPECT_FALSE(fit_batch_curve({{16, 50}, {32, 60}, {64, 70}}).valid());    // more steps with more
  EXPECT_FALSE(fit_batch_curve({{16, 400}, {32, 150}, {64, 10}}).valid());  // below zero steps
}

Choice choice_of(const std::string& name, double step_s, double steps) {
  Choice choice;
  choice.name = name;
  choice.step.step_s = step_s;
  choice.learning.steps = steps;
  choice.learning.reached = steps > 0;
  choice.learning.evaluations = 2;
  if (steps > 0) choice.learning.reached_at = {{0, 2}};
  return choice;
}

TEST(Choice, RankPutsWhatReachesAndFitsFirst) {
  std::vector<Choice> choices = {choice_of("missed", 0.001, 0), choice_of("slow", 3, 10),
                                 choice_of("large", 0.1, 10), choice_of("fast", 1, 20)};
  choices[2].fits = false;
  rank(choices);
  EXPECT_EQ(choices[0].name, "fast");
  EXPECT_EQ(choices[1].name, "slow");
  EXPECT_EQ(choices[2].name, "missed");
  EXPECT_EQ(choices[3].name, "large");
}

TEST(Choice, ReasonsNameTheBusyLink) {
  Choice choice = choice_of("server", 1, 10);
  choice.step.busiest_link = 0.94;
  choice.step.busiest_node = 8;
  choice.step.busiest_receives = true;
  choice.step.wait = 0.2;
  const std::vector<std::string> text = reasons(choice);
  ASSERT_EQ(text.size(), 1u);
  EXPECT_EQ(text[0], "the link of node 8 is busy receiving 94 % of the time");
  choice.fits = false;
  EXPECT_EQ(reasons(choice).size(), 2u);
}

// On fewer machines another number of servers is best: what-if asks for the best plan each time,
// and not for the times of today's plan.
TEST(WhatIf, PlansAnewForAnotherCluster) {
  const Settings settings =
      small_mlp("[128, 128]") +
      Settings{"cluster.fabric=virtual", "cluster.workers=8", "cluster.bandwidth=\"100 Mbit/s\"",
               "strategy={ kind = \"parameter_server\", servers = \"auto\" }"};
  Choice servers = choice_of("servers", 0, 10);
  servers.open = load_job("", settings);
  const double steps_of_epoch =
      static_cast<double>(resolve(servers.open).data.splits.train.size()) /
      static_cast<double>(servers.open.task.global_batch);
  servers.open.task.eval_every = 5 / steps_of_epoch;  // twice in 10 steps
  const Resolved task = resolve(servers.open);
  servers.job = task.job;
  Choice ring = choice_of("ring", 0, 10);
  ring.open = ring.job = with_settings(servers.open, {"strategy={ kind = \"allreduce\" }"});
  LearningCache nothing_kept("", task_identity(task.job, task), task.job, silent);
  const WhatIf what_if{task, nothing_kept, silent, never};
  size_t other_plans = 0;
  const auto best_s = [&](const Job& open) {
    const Job planned = resolve(open, task.data).job;
    other_plans += strategy_settings(planned) != strategy_settings(servers.job);
    return times_to_target(planned, resolve(open, task.data).plan, servers.learning, task.data,
                           kMostEffort / 8, never)
        .mean_s();
  };
  const json networks = what_if.bandwidth({servers, ring});
  for (const json& point : networks["points"]) {
    Job open = servers.open;
    open.cluster.bandwidth = point["bandwidth"];
    EXPECT_DOUBLE_EQ(point["times_s"]["servers"], best_s(open)) << point.dump();
  }
  other_plans = 0;
  for (const json& point : what_if.workers({servers})) {
    Job open = servers.open;
    shrink_cluster(open.cluster, point["workers"]);
    EXPECT_DOUBLE_EQ(point["time_s"], best_s(open)) << point.dump();
  }
  EXPECT_GT(other_plans, 0u);
}

class AdviseTest : public testing::Test {
 protected:
  void SetUp() override {
    write_text(folder_ / "job.toml", R"(name = "small"
[task]
data = { kind = "synthetic-classes", samples = 1000, features = 32, classes = 10, noise = 1.0 }
model = "logistic"
global_batch = 40
epochs = 3
target = 0.8
eval_every = 0.5
[optimizer]
kind = "sgd"
lr = 0.05
)");
    write_text(folder_ / "cluster.toml", R"([cluster]
fabric = "virtual"
workers = 4
speed = "10 MFLOP/s"
bandwidth = "10 Mbit/s"
latency = "1 ms"
)");
  }
  AdviseOptions options(std::vector<std::string> strategies, int seeds, bool quick) const {
    AdviseOptions result;
    result.cluster = folder_ / "cluster.toml";
    result.strategies = std::move(strategies);
    result.seeds = seeds;
    result.quick = quick;
    result.declared = true;  // what is measured here would differ from machine to machine
    result.complete = true;
    return result;
  }
  Job job() const { return load_job(folder_ / "job.toml", {}); }
  // Of every strategy, as --complete does.
  json ask(std::vector<std::string> strategies, int seeds, bool quick) const {
    return json_of(advise(job(), options(std::move(strategies), seeds, quick), silent, never));
  }
  TemporaryFolder folder_;
};

TEST_F(AdviseTest, RanksStrategiesAndSaysWhatCannotRun) {
  const json advice = ask({"solo", "allreduce"}, 2, false);
  std::set<std::string> ranked, refused;
  double before_s = 0;
  for (const json& choice : advice["choices"]) {
    ranked.insert(choice["name"]);
    ASSERT_TRUE(choice["reached"]) << choice.dump();
    EXPECT_GE(choice["time_s"].get<double>(), before_s);
    before_s = choice["time_s"];
    EXPECT_GT(choice["error"].get<double>(), 0);
    double squares = 0;
    for (const char* part : {"seeds", "simulation", "cost", "network"})
      squares += std::pow(choice["errors"][part].get<double>(), 2);
    EXPECT_DOUBLE_EQ(choice["error"].get<double>(), std::sqrt(squares));
    EXPECT_GT(choice["joules"].get<double>(), 0);
    EXPECT_FALSE(choice["reasons"].empty());
  }
  for (const json& entry : advice["refused"]) refused.insert(entry["name"]);
  EXPECT_TRUE(ranked.contains("solo") && ranked.contains("ring") && ranked.contains("tree"));
  EXPECT_TRUE(refused.contains("direct") && refused.contains("hierarchical"));
  ASSERT_EQ(advice["bandwidth"]["points"].size(), 9u);
  // With next to no network, one alone is fastest; with a fast one, together they are.
  EXPECT_EQ(advice["bandwidth"]["points"][0]["best"], "solo");
  EXPECT_NE(advice["bandwidth"]["points"][8]["best"], "solo");
  EXPECT_FALSE(advice["bandwidth"]["flips"].empty());
  EXPECT_GE(advice["batch"]["points"].size(), 3u);
  EXPECT_EQ(advice["workers"].size(), 3u);  // 1, 2, 4
  const std::string text = advice_text(described_by<Advice>(advice));
  for (const char* word : {"Why", "What to change", "network", "batch", "Not possible here"})
    EXPECT_NE(text.find(word), std::string::npos) << word;
}

// Those that learn in their own way, or whose messages depend on values, are judged too.
TEST_F(AdviseTest, KnowsEveryStrategyOfTheCatalog) {
  const json advice = ask({}, 1, true);
  size_t variants = 0;
  for (const StrategyEntry& entry : strategy_catalog()) variants += entry.variants().size();
  EXPECT_EQ(advice["choices"].size() + advice["refused"].size(),
            variants)  // the job's own is one of them
      << advice.dump(1);
}

// The seconds of a whole run, with its gradients, until it first measures the target.
double measured_s(const Job& job, const Data& data) {
  const RunRecord record = launch(resolve(job, data), {.out = "", .keep_files = false}, never);
  EXPECT_EQ(record.status, RunStatus::kDone) << job.name << ": " << record.error;
  for (const EvaluationRow& row : record.evaluations)
    if (row.quality >= job.task.target) return row.time_s;
  return NAN;
}

// What is advised is what a comparison then shows, for every variant: those that wait for nobody
// and those that talk only now and then, too.
TEST_F(AdviseTest, GivesTheTimesThatRunsTake) {
  Job base = job();
  base.cluster = load_cluster(folder_ / "cluster.toml");
  const Data data = resolve(with_settings(base, {"strategy={ kind = \"solo\" }"})).data;
  std::map<std::string, Job> jobs;
  for (ComparedJob& each : compared_jobs(base, {"all"}, Memory::kMayBeShort))
    if (each.refusal.empty()) jobs.emplace(each.job.name, std::move(each.job));
  size_t compared = 0;
  const json advice = ask({}, 1, true);
  for (const json& choice : advice["choices"]) {
    if (!choice["reached"]) continue;
    const double measured = measured_s(jobs.at(choice["name"]), data), said = choice["time_s"];
    EXPECT_NEAR(said, measured, choice["error"].get<double>() * measured) << choice["name"];
    ++compared;
  }
  EXPECT_GT(compared, 20u);
}

// Where a whole run would be too much, the intervals that are simulated stand for those that are
// not, by a few of them or by two lengths of shorter ones.
TEST_F(AdviseTest, TakesLaterIntervalsToBeLikeTheFirst) {
  Job base = job();
  base.cluster = load_cluster(folder_ / "cluster.toml");
  base.task.epochs = 16;
  base.task.eval_every = 2;
  base.task.target = 0;
  const Data data = resolve(with_settings(base, {"strategy={ kind = \"solo\" }"})).data;
  for (const std::string name : {"ring", "ps-bsp", "ps-asp", "local-sgd-16", "gossip-async",
                                 "elastic-averaging-async", "fedavg", "pipeline-auto"}) {
    const ComparedJob candidate =
        std::move(compared_jobs(base, {name}, Memory::kMayBeShort).front());
    const RunRecord record =
        launch(resolve(candidate.job, data), {.out = "", .keep_files = false}, never);
    Learning learning;  // at the last evaluation but one, so that no end of a run is in it
    learning.evaluations = static_cast<double>(record.evaluations.size() - 1);
    const EvaluationRow& row = record.evaluations[record.evaluations.size() - 2];
    learning.steps = static_cast<double>(row.step);
    learning.reached = 1;
    learning.reached_at = {{0, std::llround(learning.evaluations)}};
    double effort_of_run = 0;
    for (const NodePlan& node : candidate.plan.nodes)
      effort_of_run += learning.steps * (1 + node.messages);
    const auto relative = [&](double effort) {
      return times_to_target(candidate.job, candidate.plan, learning, data, effort, never)
                 .mean_s() /
             row.time_s;
    };
    EXPECT_NEAR(relative(2 * effort_of_run), 1, 1e-9) << name;
    // Rhythms of nodes at a pace of their own differ from interval to interval by some per cent.
    EXPECT_NEAR(relative(0.7 * effort_of_run), 1, 0.05) << name;
    EXPECT_NEAR(relative(0.3 * effort_of_run), 1, 0.1) << name;
  }
}

// Members of a class learn alike, so one of them computes for all.
TEST_F(AdviseTest, ComputesGradientsOncePerClass) {
  int runs = 0;
  const json advice = json_of(advise(
      job(), options({"ring", "butterfly"}, 2, true),
      [&](const std::string& what) { runs += what.starts_with("learning"); }, never));
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(advice["choices"][0]["steps_to_target"], advice["choices"][1]["steps_to_target"]);
  EXPECT_FALSE(advice.contains("bandwidth"));
}

TEST_F(AdviseTest, MeasuresTheModelHere) {
  AdviseOptions measured = options({"ring"}, 1, true);
  measured.declared = false;
  const json advice = json_of(advise(job(), measured, silent, never));
  const json& cost = advice["model_cost"];
  EXPECT_EQ(cost["obtained"], "measured");
  EXPECT_GT(cost["efficiency"].get<double>(), 0);
  EXPECT_NEAR(cost["flops"].get<double>() * cost["sample_s"].get<double>(),
              advice["task"]["flops_per_sample"].get<double>(), 1e-3);
}

TEST_F(AdviseTest, SaysWhatDoesNotFitTheMemory) {
  write_text(folder_ / "cluster.toml",
             "[cluster]\nfabric = \"virtual\"\nworkers = 4\n"
             "memory = \"1 kB\"\n");
  const json advice = ask({"ring"}, 1, true);
  EXPECT_EQ(advice["choices"][0]["fits"], false);
  EXPECT_EQ(advice["memory"]["model_fits"], false);
  EXPECT_EQ(advice["memory"]["data_fits"], false);
  EXPECT_NE(advice["memory"]["text"].get<std::string>().find("hybrid"), std::string::npos);
}

TEST_F(AdviseTest, RefusesWhatItCannotAnswer) {
  const Job aimless = with_settings(job(), {"task.target=0"});
  EXPECT_THROW(advise(aimless, options({}, 1, true), silent, never), ConfigError);
  EXPECT_THROW(ask({"rinq"}, 1, true), ConfigError);
  EXPECT_THROW(ask({"direct"}, 1, true), ConfigError);
  EXPECT_THROW(load_cluster("rack-2g"), ConfigError);
  write_text(folder_ / "cluster.toml", "[cluster]\nfabric = \"process\"\n");
  EXPECT_THROW(ask({}, 1, true), ConfigError);
}

TEST(Clusters, ThatComeWithTheProgramAreValid) {
  for (const char* name :
       {"laptop", "rack-1g", "rack-10g", "two-racks", "heterogeneous", "stragglers", "edge-wan"})
    EXPECT_GE(load_cluster(name).workers, 4) << name;
}

// Three affine layers of which two are large, and memory for one of them with its gradients.
TEST(MemoryAdvice, SaysWhichSplitWouldFit) {
  const auto text = [](const char* memory) {
    Choice choice;
    choice.job = load_job(
        "", {"task.data.kind=synthetic-classes", "task.data.samples=400", "task.data.features=16",
             "task.model.kind=mlp", "task.model.hidden=[512, 512, 512]", "task.global_batch=64",
             "strategy.kind=solo", "cluster.workers=1", "cluster.fabric=virtual",
             fmt::format("cluster.memory=\"{}\"", memory)});
    const Resolved resolved = resolve(choice.job);
    choice.memory_bytes = resolved.plan.most_memory_bytes();
    return memory_advice(choice, resolved)["text"].get<std::string>();
  };
  EXPECT_EQ(text("100 MB").find("pipeline"), std::string::npos) << text("100 MB");
  EXPECT_NE(text("4 MB").find("a pipeline of 2 stages would fit"), std::string::npos)
      << text("4 MB");
  EXPECT_NE(text("1 kB").find("no pipeline of its layers would fit"), std::string::npos);
}

}  // namespace
}  // namespace tutti
