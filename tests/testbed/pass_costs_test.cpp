// All commands use one cost model: the fit finds the true cost of a pass, nodes that are not used
// do not matter, and a recommended job takes the times of the advice.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/described_json.h"
#include "core/error.h"
#include "jobs/launcher.h"
#include "testbed/advise.h"
#include "testbed/choice.h"
#include "testbed/model_cost.h"
#include "testbed/step_simulation.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;
using nlohmann::json;

const std::atomic<bool> not_stopped{false};
const Announce unannounced = [](const std::string&) {};

// The model has 16 x 11 + 11 + 11 x 4 + 4 parameters: a pass is nearly all fixed cost.
constexpr const char* kSmallJob = R"(name = "small"
[task]
data = { kind = "synthetic-classes", samples = 2000, features = 16, classes = 4, noise = 0.5 }
model = { kind = "mlp", hidden = [11] }
global_batch = 64
epochs = 4
target = 0.8
eval_every = 0.5
[optimizer]
kind = "sgd"
lr = 0.1
[cluster]
fabric = "virtual"
workers = 16
speed = "20 GFLOP/s"
bandwidth = "1 Gbit/s"
latency = "50 us"
)";

class SmallModel : public testing::Test {
 protected:
  void SetUp() override { write_text(folder_ / "job.toml", kSmallJob); }
  Job job(const Settings& more = {}) const { return load_job(folder_ / "job.toml", more); }
  static json ask(const Job& job, std::vector<std::string> strategies, bool declared) {
    const AdviseOptions options{.cluster = "",
                                .strategies = std::move(strategies),
                                .seeds = 1,
                                .quick = true,
                                .declared = declared};
    return json_of(advise(job, options, unannounced, not_stopped));
  }
  TemporaryFolder folder_;
};

TEST(PassCosts, AreFoundAgainWhereTimesFollowThem) {
  std::vector<TimedPass> passes;
  for (const int64_t batch : batches_to_time(128))
    for (const bool gradient : {false, true}) {
      TimedPass pass{.layers = gradient ? 22.0 : 11.0,
                     .samples = static_cast<double>(batch) / (gradient ? 1 : 3),
                     .seconds = 0,
                     .batch = batch};
      pass.seconds = 10e-6 + pass.layers * 4e-6 + pass.samples * 30e-6;
      passes.push_back(pass);
    }
  ASSERT_GE(passes.size(), 8u);
  const PassCosts costs = fit_pass_costs(passes);
  EXPECT_NEAR(costs.step_s, 10e-6, 1e-10);
  EXPECT_NEAR(costs.layer_s, 4e-6, 1e-10);
  EXPECT_NEAR(costs.sample_s, 30e-6, 1e-10);
  EXPECT_LT(costs.error, 1e-9);
  for (TimedPass& pass : passes) pass.seconds = pass.samples * 30e-6;  // nothing is fixed
  const PassCosts free = fit_pass_costs(passes);
  EXPECT_GE(free.step_s, 0);
  EXPECT_NEAR(free.sample_s, 30e-6, 1e-10);
  EXPECT_NEAR(free.step_s + free.layer_s, 0, 1e-10);
}

// The error is the root of the mean square of what the fit is off, relative to each time.
TEST(PassCosts, SayHowFarTimesAreFromThem) {
  std::vector<TimedPass> passes;
  for (int i = 0; i < 40; ++i)
    passes.push_back({.layers = 0, .samples = 1, .seconds = i % 2 ? 0.8e-3 : 1.2e-3, .batch = 1});
  EXPECT_NEAR(fit_pass_costs(passes).error, 0.2, 0.02);
  // Only the share of the time in which nodes compute is that uncertain.
  Choice choice;
  choice.step.compute = 0.5;
  const double before = choice.error();
  choice.cost_error = 0.8;
  EXPECT_NEAR(choice.error(), std::hypot(before, 0.4), 1e-12);
}

// Ten passes that three costs were fitted to leave seven differences. Three rounds leave two.
TEST(PassCosts, AreAsUncertainAsTheirFitAndTheMachine) {
  ModelCost cost;
  EXPECT_EQ(cost.half_width(), 0);  // declared
  cost.timed.resize(10);
  cost.error = 0.1;
  cost.rounds = 3;
  EXPECT_NEAR(cost.half_width(), 1.645 * 0.1 * std::sqrt(10.0 / 7), 1e-12);
  cost.noise = 0.2;
  EXPECT_NEAR(cost.half_width(), std::hypot(1.645 * 0.1 * std::sqrt(10.0 / 7), 2.920 * 0.2), 1e-12);
}

// A core with half the speed of this one takes twice as long, for what is fixed and for samples.
TEST(PassCosts, AreThoseOfThisMachineOnACoreAsFast) {
  ModelCost cost;
  cost.flops = 5e9;  // of the model here, where the kernel runs at twice that
  cost.reference_flops = 10e9;
  cost.step_s = 10e-6;
  cost.layer_s = 2e-6;
  for (const double speed : {10e9, 5e9, 40e9}) {
    ClusterConfig cluster;
    cluster.speed_flops = speed;
    cluster.loop_overhead_s = 3e-6;
    const double loop_s = overhead_of(cluster, 0, 0, 0, 1);
    use_model_cost(cluster, cost);
    EXPECT_NEAR(overhead_of(cluster, 0, 0, 0, 1), loop_s, 1e-15) << "no part of the model";
    const double slower = 10e9 / speed;
    EXPECT_NEAR(overhead_of(cluster, 0, 1, 0), slower * 10e-6, 1e-15) << speed;
    EXPECT_NEAR(overhead_of(cluster, 0, 0, 3), slower * 6e-6, 1e-15) << speed;
    EXPECT_NEAR(speed_of(cluster, 0), 5e9 / slower, 1) << speed;
  }
}

TEST(PassCosts, AreTimedOnFourSizesOrMore) {
  EXPECT_EQ(batches_to_time(1), (std::vector<int64_t>{1}));
  EXPECT_EQ(batches_to_time(3), (std::vector<int64_t>{1, 2, 3}));
  for (const int64_t most : {4, 5, 7, 8, 64, 1000, 100'000}) {
    const std::vector<int64_t> sizes = batches_to_time(most);
    EXPECT_GE(sizes.size(), 4u) << most;
    EXPECT_EQ(sizes.front(), 1);
    EXPECT_EQ(sizes.back(), most);
  }
}

// A single node computes alone, whatever other nodes there are.
TEST_F(SmallModel, SoloDoesNotDependOnNodesThatItDoesNotUse) {
  double first_s = 0;
  for (const int workers : {1, 2, 4, 16, 64}) {
    const json advice =
        ask(job({fmt::format("cluster.workers={}", workers)}), {"solo"}, /*declared=*/true);
    const double time_s = advice["choices"][0]["time_s"];
    if (workers == 1) first_s = time_s;
    EXPECT_DOUBLE_EQ(time_s, first_s) << workers;
  }
}

TEST_F(SmallModel, OneNodeComesFirstWhereAStepIsNearlyAllFixedCost) {
  for (const bool declared : {true, false}) {
    const json advice = ask(job(), {"solo", "ring", "ps-bsp"}, declared);
    EXPECT_EQ(advice["choices"][0]["name"], "solo") << advice["choices"].dump(1);
    EXPECT_GT(advice["model_cost"]["fixed_share_spread"].get<double>(), 0.5);
    const std::string text = advice_text(described_by<Advice>(advice));
    EXPECT_NE(text.find("% of a step on one node"), std::string::npos) << text;
    EXPECT_NE(text.find("\nPlans\n  ps-bsp "), std::string::npos) << text;
    EXPECT_EQ(text.find("(fitted to batches of 1 to 64, error ") == std::string::npos, declared);
  }
}

// The costs were measured on this machine, which others use too. The recommended job declares them,
// so that it takes the same virtual times everywhere.
TEST_F(SmallModel, AJobThatIsHandedOnTakesTheTimesOfTheAdvice) {
  for (const char* strategy : {"solo", "ring"}) {
    const json advice = ask(job({"cluster.workers=4"}), {strategy}, /*declared=*/false);
    const json& best = advice["choices"][0];
    ASSERT_TRUE(best["reached"].get<bool>());
    const json& cost = advice["model_cost"];
    EXPECT_DOUBLE_EQ(cost["speed"], 20e9 * cost["efficiency"].get<double>());
    EXPECT_DOUBLE_EQ(cost["step_overhead"],
                     cost["step_s"].get<double>() * cost["flops"].get<double>() / kReferenceFlops);
    write_text(folder_ / "handed.toml", advice["job"].get<std::string>());
    Job handed = load_job(folder_ / "handed.toml",
                          {fmt::format("cluster.workers={}", best["workers"].get<int>()),
                           "task.stop_at_target=true"});
    double total_s = 0;
    for (const NodeReport& node :
         launch(handed, {.out = "", .keep_files = false}, not_stopped).nodes)
      total_s = std::max(total_s, node.total_s);
    // The steps of a ring drift into a rhythm, so their times are similar but not equal.
    EXPECT_NEAR(total_s, best["time_s"].get<double>(), 0.05 * total_s) << strategy;
    const json again = ask(handed, {strategy}, /*declared=*/true);
    EXPECT_NEAR(again["choices"][0]["time_s"].get<double>(), best["time_s"].get<double>(),
                1e-9 * total_s);
  }
}

// `survey` and `compare` simulate as advice does, because all charge the same cost of a pass.
TEST_F(SmallModel, AStepOfAWholeRunIsTheStepOfTheAdvice) {
  Job solo = job({"cluster.workers=1", "strategy.kind=solo"});
  const Resolved resolved = resolve(solo);
  const StepFigures step = simulate_steps(solo, resolved.data, not_stopped);
  const double layers = 2.0 * static_cast<double>(resolved.architecture.layers.size());
  const double pass_s = overhead_of(solo.cluster, 0, 1, layers) +
                        64 * resolved.architecture.training_flops() / solo.cluster.speed_flops;
  EXPECT_GE(step.step_s, pass_s);
  EXPECT_LT(step.step_s, 1.05 * pass_s);  // the rest is the optimizer's update
}

TEST_F(SmallModel, ARealClusterIsNoClusterToAdviseFor) {
  write_text(folder_ / "real.toml",
             "[task]\ndata = \"synthetic-classes\"\nmodel = \"logistic\"\ntarget = 0.8\n"
             "[cluster]\nfabric = \"process\"\n");
  try {
    ask(load_job(folder_ / "real.toml", {}), {"solo"}, true);
    FAIL() << "it advised";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.key(), "--cluster");
    EXPECT_NE(std::string(error.what()).find("rack-1g"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tutti
