// The estimates that plans are chosen by against the simulation, where what is fixed in a pass and
// in a layer takes nearly all of the time.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "strategies/pipeline/placement.h"
#include "tests/support/jobs.h"

namespace tutti {
namespace {

using namespace testing_support;

// Computing takes no time, and the network hardly any.
Settings fixed_costs(const Settings& more) {
  return Settings{"task.data.kind=synthetic-classes",
                  "task.data.samples=512",
                  "task.data.features=16",
                  "task.data.classes=16",
                  "task.model.kind=mlp",
                  "task.model.hidden=[16, 16, 16, 16]",
                  "task.global_batch=32",
                  "optimizer.kind=sgd",
                  "strategy.kind=pipeline",
                  "strategy.micro_batches=8",
                  "cluster.fabric=virtual",
                  "cluster.speed=\"20 GFLOP/s\"",
                  "cluster.memory_bandwidth=\"1000 GB/s\"",
                  "cluster.bandwidth=\"1000 GB/s\"",
                  "cluster.latency=\"1 ns\"",
                  "cluster.cost_only=true"} +
         more;
}

double simulated_step_s(const Settings& settings) {
  const auto total_s = [&](const char* steps) {
    const RunRecord record = run(settings + Settings{std::string("task.max_steps=") + steps});
    EXPECT_EQ(record.status, RunStatus::kDone) << record.error;
    return record.nodes.front().total_s;
  };
  return (total_s("7") - total_s("3")) / 4;
}

double estimated_step_s(const Settings& settings, PipelineConfig config) {
  config.micro_batches = 8;
  const Resolved resolved = resolve(load_job("", settings));
  const PlanInput input{resolved.job.task, resolved.job.cluster, resolved.job.optimizer,
                        resolved.architecture};
  return estimated(place_stages(config, input), config, input).step_s;
}

// Arithmetic and messages take less than 1 % of this.
TEST(StageCosts, CountWhatIsFixedAsTheSimulationDoes) {
  const std::vector<Settings> overheads = {
      {"cluster.step_overhead=10 ms", "cluster.layer_overhead=0"},
      {"cluster.step_overhead=0", "cluster.layer_overhead=1 ms"},
      {"cluster.step_overhead=10 ms", "cluster.layer_overhead=1 ms"}};
  struct Way {
    Settings settings;
    PipelineConfig config;
  };
  std::vector<Way> ways(3);
  ways[0].settings = {"cluster.workers=1"};
  ways[1].settings = {"cluster.workers=3", "strategy.schedule=1f1b"};
  ways[1].config.schedule = PipelineSchedule::k1f1b;
  ways[2].settings = {"cluster.workers=3", "strategy.schedule=gpipe", "strategy.stages=[4, 8]"};
  ways[2].config.schedule = PipelineSchedule::kGpipe;
  ways[2].config.stages.places = {4, 8};
  for (const Settings& overhead : overheads)
    for (const Way& way : ways) {
      const Settings settings = fixed_costs(overhead + way.settings);
      const double simulated_s = simulated_step_s(settings);
      EXPECT_NEAR(estimated_step_s(settings, way.config), simulated_s, 0.02 * simulated_s)
          << fmt::format("{}", fmt::join(overhead + way.settings, ", "));
    }
}

// Nobody waits for a single stage, so parts of its batch would only cost what each part costs.
TEST(StageCosts, ASingleStageTakesItsBatchWhole) {
  for (const char* strategy : {"kind = \"pipeline\", stages = \"auto\", replicas = 1",
                               "kind = \"hybrid\", stages = \"auto\""}) {
    const Resolved resolved = resolve(load_job(
        "", fixed_costs({fmt::format("strategy={{ {} }}", strategy), "cluster.workers=1"})));
    const std::string plan = fmt::format("{}", fmt::join(resolved.plan.reasons, "\n"));
    EXPECT_NE(plan.find("1 micro-batch"), std::string::npos) << plan;
    EXPECT_EQ(plan.find("4 micro-batches"), std::string::npos) << plan;
    EXPECT_NE(plan.find("nodes idle 0 %"), std::string::npos) << plan;
  }
}

}  // namespace
}  // namespace tutti
