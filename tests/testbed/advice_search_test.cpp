// What an advice does first, what it leaves out, and which nodes it tries.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "core/described_json.h"
#include "core/error.h"
#include "jobs/launcher.h"
#include "testbed/advice_works.h"
#include "testbed/advise.h"
#include "testbed/clusters.h"
#include "testbed/variants.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;

const std::atomic<bool> nobody_stops{false};

class Search : public testing::Test {
 protected:
  Search() {
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
    options_.cluster = folder_ / "cluster.toml";
    options_.quick = true;
    options_.declared = true;  // what is measured here would differ from machine to machine
  }
  // Computing takes most of the time of these nodes, or sending does.
  void write_cluster(const std::string& speed, const std::string& more) const {
    write_text(folder_ / "cluster.toml",
               fmt::format("[cluster]\nfabric = \"virtual\"\nworkers = 8\nspeed = \"{}\"\n"
                           "step_overhead = 0\nlayer_overhead = 0\n"
                           "bandwidth = \"100 Mbit/s\"\nlatency = \"100 us\"\n{}",
                           speed, more));
  }
  Advice ask(const std::atomic<bool>& stop = nobody_stops) {
    return advise(
        load_job(folder_ / "job.toml", sets_), options_,
        [this](const std::string& what) { learned_ += what.starts_with("learning: "); }, stop);
  }
  static const AdvisedChoice& choice(const Advice& advice, const std::string& name) {
    const auto found = std::find_if(advice.choices.begin(), advice.choices.end(),
                                    [&](const AdvisedChoice& c) { return c.name == name; });
    EXPECT_NE(found, advice.choices.end()) << name;
    return *found;
  }
  TemporaryFolder folder_;
  AdviseOptions options_;
  Settings sets_;
  int learned_ = 0;
};

// Gossip that sends every step on a slow network takes many times as long as one worker alone: no
// way to learn could make up for that.
TEST_F(Search, LeavesOutWhatCannotWin) {
  write_cluster("1 GFLOP/s", "");
  options_.strategies = {"solo", "gossip-ring"};
  const Advice advice = ask();
  EXPECT_EQ(advice.status, AdviceStatus::kComplete);
  EXPECT_EQ(advice.choices.front().name, "solo");
  const AdvisedChoice& gossip = choice(advice, "gossip-ring");
  EXPECT_FALSE(gossip.reached);
  EXPECT_FALSE(gossip.is_judged());
  EXPECT_NE(gossip.left_out.find("could not win even if it learned as fast as solo"),
            std::string::npos)
      << gossip.left_out;
  EXPECT_NE(advice_text(advice).find(gossip.left_out), std::string::npos);
  EXPECT_EQ(advice.sentence.find("gossip"), std::string::npos) << advice.sentence;
  EXPECT_EQ(learned_, 3) << "of solo alone";
  options_.complete = true;
  EXPECT_TRUE(choice(ask(), "gossip-ring").reached) << "where everything is asked for";
}

// Four nodes wait for four that are eight times slower.
TEST_F(Search, LeavesOutNodesThatOthersWaitFor) {
  write_cluster("2 MFLOP/s", "speed_factors = [0.125, 1, 1, 0.125, 1, 0.125, 1, 0.125]\n");
  options_.strategies = {"ring"};
  const Advice advice = ask();
  const AdvisedChoice& ring = advice.choices.front();
  EXPECT_EQ(ring.where, "on the 4 fastest nodes");
  EXPECT_EQ(ring.workers, 4);
  EXPECT_EQ(ring.of_nodes, 8);
  EXPECT_NE(advice.sentence.find("Use ring on the 4 fastest nodes: "), std::string::npos)
      << advice.sentence;
  // The job to run is for these nodes and takes the time that was said.
  const Job job = parse_job(advice.job_to_run, "advice");
  EXPECT_EQ(job.cluster.workers, 4);
  EXPECT_EQ(job.cluster.speed_factors, (std::vector<double>{1, 1, 1, 1}));
  EXPECT_EQ(parse_job(advice.job, "advice").cluster.workers, 8);
  const RunRecord record = launch(resolve(job), {.out = "", .keep_files = false}, nobody_stops);
  double measured_s = 0;
  for (const EvaluationRow& row : record.evaluations)
    if (measured_s == 0 && row.quality >= job.task.target) measured_s = row.time_s;
  EXPECT_NEAR(*ring.time_s, measured_s, *ring.error * measured_s);
}

// Where messages take all of the time, fewer nodes are faster.
TEST_F(Search, TriesFewerNodes) {
  write_cluster("1 GFLOP/s", "");
  options_.strategies = {"ring"};
  const Advice advice = ask();
  EXPECT_LT(advice.choices.front().workers, 8);
  EXPECT_EQ(advice.tried_nodes.size(), 2u);  // 4 and 2
  EXPECT_TRUE(std::any_of(advice.tried_nodes.begin(), advice.tried_nodes.end(),
                          [](const TriedNodes& tried) { return tried.taken; }));
  EXPECT_EQ(advice.sentence.find("8 nodes"), std::string::npos) << advice.sentence;
}

TEST_F(Search, EndsWithTheAnswerSoFar) {
  write_cluster("10 MFLOP/s", "");
  options_.seeds = 100;
  options_.strategies = {"solo", "ring"};
  std::atomic<bool> stop{false};
  std::string first;
  options_.answered = [&](const std::string& sentence) {
    if (first.empty()) first = sentence;
    stop = true;
  };
  const Advice advice = ask(stop);
  EXPECT_EQ(advice.status, AdviceStatus::kInterrupted);
  EXPECT_NE(first, "");
  EXPECT_TRUE(advice.choices.front().time_s);
  EXPECT_NE(advice_text(advice).find("Interrupted: this is the answer so far."), std::string::npos);
  EXPECT_LT(learned_, 100);
}

// Asynchronous gossip sends what depends on values, so it is simulated with gradients: here these
// are no numbers after a few steps.
TEST_F(Search, GoesOnWhereASimulationFails) {
  write_cluster("10 MFLOP/s", "");
  sets_ = {"optimizer.lr=1e30"};
  options_.strategies = {"solo", "gossip-async"};
  const Advice advice = ask();
  ASSERT_EQ(advice.refused.size(), 1u) << advice_text(advice);
  EXPECT_EQ(advice.refused[0].name, "gossip-async");
  EXPECT_TRUE(advice.refused[0].reason.starts_with("its time could not be simulated: "));
  EXPECT_NE(advice.refused[0].reason.find("finite"), std::string::npos) << advice.refused[0].reason;
  EXPECT_TRUE(advice.sentence.starts_with("No strategy reached accuracy 0.8")) << advice.sentence;
}

TEST(AdviceWorks, TellNoTimeThatIsNone) {
  EXPECT_EQ(known_time(2e-3), 2e-3);
  for (const double none : {0.0, -2e-3, std::nan("")}) EXPECT_THROW(known_time(none), Error);
}

TEST_F(Search, HasNoAnswerToEndWithAtItsBeginning) {
  write_cluster("10 MFLOP/s", "");
  const std::atomic<bool> stop{true};
  EXPECT_THROW(ask(stop), InterruptedError);
}

TEST_F(Search, EndsWhenItsBudgetIsUsed) {
  write_cluster("10 MFLOP/s", "");
  options_.strategies = {"solo", "ring"};
  options_.seeds = 100;
  options_.quick = false;
  options_.answered = [&](const std::string&) { options_.budget_s = 1e-3; };
  const Advice advice = ask();
  EXPECT_EQ(advice.status, AdviceStatus::kBudget);
  EXPECT_FALSE(advice.not_asked.empty());
  EXPECT_NE(advice_text(advice).find("The budget is used"), std::string::npos);
}

TEST_F(Search, LearnsOnceForAllClusters) {
  write_cluster("10 MFLOP/s", "");
  options_.strategies = {"solo", "ring", "local-sgd-16"};
  options_.cache = folder_ / "lessons";
  const Advice before = ask();
  const int learned = learned_;
  EXPECT_GT(learned, 0);
  EXPECT_EQ(before.learned_before, "");
  write_cluster("9 MFLOP/s", "");
  const Advice after = ask();
  EXPECT_EQ(learned_, learned) << "nothing is learned for a cluster that is nearly the same";
  EXPECT_EQ(after.learned_before, options_.cache);
  EXPECT_EQ(after.choices.front().steps_to_target, before.choices.front().steps_to_target);
  options_.cache.clear();
  ask();
  EXPECT_GT(learned_, learned);
}

// With its gradients, until it first measures the target.
std::optional<double> measured_s(const Job& job) {
  const RunRecord record = launch(resolve(job), {.out = "", .keep_files = false}, nobody_stops);
  for (const EvaluationRow& row : record.evaluations)
    if (row.quality >= job.task.target) return row.time_s;
  return std::nullopt;
}

// The data is generated, so each seed has its own, as whoever compares three seeds has it. What is
// left out cannot be compared; fewer nodes are taken where they are faster.
TEST_F(Search, GivesTheTimesThatThreeSeedsTake) {
  write_cluster("10 MFLOP/s", "");
  options_.strategies = {"ring", "local-sgd-16", "elastic-averaging-async"};
  options_.seeds = 3;
  const Advice advice = ask();
  int compared = 0;
  for (const AdvisedChoice& choice : advice.choices) {
    if (!choice.reached) continue;
    Job base = load_job(folder_ / "job.toml", {});
    base.cluster = load_cluster(options_.cluster);
    if (choice.of_nodes) base.cluster.workers = choice.workers;
    Job planned = compared_jobs(base, {choice.name}, Memory::kMayBeShort).front().job;
    std::vector<double> times_s;
    for (int64_t seed = 0; seed < *choice.runs; ++seed, ++planned.task.seed)
      if (const std::optional<double> time_s = measured_s(planned)) times_s.push_back(*time_s);
    ASSERT_EQ(std::ssize(times_s), *choice.runs_reached) << choice.name;
    double mean_s = 0;
    for (const double time_s : times_s) mean_s += time_s / static_cast<double>(times_s.size());
    EXPECT_NEAR(*choice.time_s, mean_s, (1e-6 + *choice.errors.simulation) * mean_s) << choice.name;
    compared += *choice.runs == 3;
  }
  EXPECT_GE(compared, 2);
}

// Within two epochs one of its seeds does not get there.
TEST_F(Search, SaysHowManySeedsReachTheTarget) {
  write_cluster("10 MFLOP/s", "");
  sets_ = {"task.target=0.99", "task.epochs=2"};
  options_.strategies = {"local-sgd-16"};
  const Advice advice = ask();
  const AdvisedChoice& choice = advice.choices.front();
  EXPECT_EQ(choice.runs, 3);
  EXPECT_EQ(choice.runs_reached, 2);
  EXPECT_TRUE(choice.reached);
  EXPECT_NE(advice.sentence.find("; it missed the target with 1 of 3 seeds."), std::string::npos)
      << advice.sentence;
  EXPECT_NE(advice_text(advice).find(" 2 of 3 "), std::string::npos) << advice_text(advice);
}

std::string without(Advice advice, const std::string& cache) {
  if (advice.learned_before == cache) advice.learned_before.clear();
  return json_of(advice).dump(1);
}

// What was learned the first time is read the second time, and nothing else is new: neither whose
// other nodes are tried nor the times of those whose messages depend on values.
TEST_F(Search, AnswersTheSameTheSecondTime) {
  write_cluster("100 MFLOP/s", "");
  options_.strategies = {"solo", "ring", "local-sgd-16", "gossip-async", "fedavg"};
  options_.cache = folder_ / "lessons";
  const Advice first = ask();
  const int learned = learned_;
  EXPECT_GT(first.tried_nodes.size(), 1u);
  const Advice second = ask();
  EXPECT_EQ(learned_, learned);
  EXPECT_EQ(without(first, options_.cache), without(second, options_.cache));
}

// What is sent depends on values, so a few intervals stand for the others where the run itself was
// not on that cluster: with what evaluations take, which is a third of this time.
TEST_F(Search, KnowsRoughlyWhatItDoesNotLearnHere) {
  write_cluster("100 MFLOP/s", "");
  options_.strategies = {"gossip-async"};
  options_.seeds = 1;
  options_.cache = folder_ / "lessons";
  ask();
  write_cluster("100 MFLOP/s", "timeout = 121\n");  // another cluster with the same times
  const int learned = learned_;
  const Advice advice = ask();
  EXPECT_EQ(learned_, learned);
  options_.cache.clear();
  const Advice anew = ask();
  EXPECT_NEAR(*advice.choices.front().time_s / *anew.choices.front().time_s, 1, 0.1);
}

// Whoever asked an hour ago has waited for an hour, whatever it was spent with.
TEST_F(Search, CountsItsBudgetFromTheQuestion) {
  write_cluster("10 MFLOP/s", "");
  options_.strategies = {"solo", "ring"};
  options_.budget_s = 1800;
  options_.asked -= std::chrono::hours(1);
  EXPECT_THROW(ask(), ConfigError);
  EXPECT_EQ(learned_, 0);
}

}  // namespace
}  // namespace tutti
