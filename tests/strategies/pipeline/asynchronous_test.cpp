// Pipelines that do not wait: what each gradient is computed on, against a reference that computes
// it in one place.
#include <gtest/gtest.h>

#include "data/batches.h"
#include "jobs/plugins.h"
#include "models/stage.h"
#include "strategies/parameter_layout.h"
#include "strategies/pipeline/weight_stash.h"
#include "tests/support/parameters.h"

namespace tutti {
namespace {

using namespace testing_support;

Settings task_in_stages() {
  return small_mlp("[12, 10, 8]") + Settings{"optimizer.kind=momentum", "optimizer.lr=0.05"};
}

const Settings kAsynchronous = {"strategy.kind=pipeline", "strategy.schedule=asynchronous"};

Settings on(const std::string& fabric, size_t workers) {
  return {"cluster.fabric=" + fabric, "cluster.workers=" + std::to_string(workers)};
}

// PipeDream in one place: batch k sees, in stage s of p, the weights from p - 1 - s updates before
// its own, or the first ones; its gradient is that of the whole model at those weights. With
// vertical sync all see those of the first stage.
std::vector<float> reference(const Settings& settings, const std::vector<size_t>& cuts,
                             bool vertical = false) {
  Job job = load_job("", settings);
  const Resolved resolved = resolve(job);
  const Data& data = resolved.data;
  const Architecture& architecture = resolved.architecture;
  std::vector<float> parameters(architecture.parameter_count), gradients(parameters.size());
  initialise(architecture, job.task.seed, parameters);
  const auto model =
      load_models(architecture, 1)
          .whole(architecture, {parameters, gradients}, {.seed = job.task.seed, .threads = 1});
  struct Stage {
    Range values;
    std::vector<std::vector<float>> versions;
    std::unique_ptr<Optimizer> optimizer;
  };
  std::vector<Stage> stages;
  for (const Range layers : stages_between(architecture, cuts)) {
    const Architecture own = stage_of(architecture, layers);
    const Range values{own.place.value, own.place.value + own.parameter_count};
    const auto first = std::span(parameters).subspan(values.begin, values.size());
    stages.push_back(
        {values, {{first.begin(), first.end()}}, make_optimizer(job.optimizer, layout_of(own))});
  }
  Batches batches(data.splits.train, Partition::kGlobal, 1, job.task.seed);
  batches.begin_epoch(0, job.task.global_batch);
  Batch batch;
  for (int64_t k = 0; k < batches.steps(); ++k) {
    for (size_t s = 0; s < stages.size(); ++s) {
      const auto behind = static_cast<int64_t>(stages.size() - 1 - (vertical ? 0 : s));
      const auto version = static_cast<size_t>(std::max<int64_t>(0, k - behind));
      const std::vector<float>& weights = stages[s].versions[version];
      std::copy(weights.begin(), weights.end(),
                parameters.begin() + static_cast<ptrdiff_t>(stages[s].values.begin));
    }
    batch.step = static_cast<uint64_t>(k);
    data.dataset->gather(batches.share(k, 0), batch);
    model->gradient(batch, 1.0F / static_cast<float>(batches.count(k)), {});
    for (Stage& stage : stages) {
      std::vector<float> next = stage.versions.back();
      stage.optimizer->step(next,
                            std::span(gradients).subspan(stage.values.begin, stage.values.size()),
                            job.optimizer.lr);
      stage.versions.push_back(std::move(next));
    }
  }
  for (const Stage& stage : stages)
    std::copy(stage.versions.back().begin(), stage.versions.back().end(),
              parameters.begin() + static_cast<ptrdiff_t>(stage.values.begin));
  return parameters;
}

TEST(AsynchronousPipeline, ComputesEachGradientOnTheWeightsOfItsForwardPass) {
  const Settings task = task_in_stages() + kAsynchronous + Settings{"task.eval_every=10"};
  for (const auto& [stages, cuts] :
       {std::pair<std::string, std::vector<size_t>>{"[3, 6, 9]", {3, 6, 9}},
        std::pair<std::string, std::vector<size_t>>{"[6]", {6}}}) {
    const Settings cut = task + Settings{"strategy.stages=" + stages};
    const std::vector<float> expected = reference(cut + on("process", cuts.size() + 1), cuts);
    for (const char* fabric : {"process", "virtual"})
      EXPECT_EQ(parameters_after(cut + on(fabric, cuts.size() + 1)), expected)
          << stages << " on " << fabric;
    EXPECT_EQ(parameters_after(cut + on("virtual", cuts.size() + 1) +
                               Settings{"strategy.recompute=true"}),
              expected);
  }
}

TEST(AsynchronousPipeline, WithVerticalSyncComputesEachGradientOnOneVersion) {
  const Settings task =
      task_in_stages() + kAsynchronous +
      Settings{"task.eval_every=10", "strategy.vertical_sync=true", "strategy.stages=[3, 6, 9]"};
  const std::vector<float> expected = reference(task + on("process", 4), {3, 6, 9}, true);
  for (const char* fabric : {"process", "virtual"})
    EXPECT_EQ(parameters_after(task + on(fabric, 4)), expected) << fabric;
  EXPECT_EQ(parameters_after(task + on("virtual", 4) + Settings{"strategy.recompute=true"}),
            expected);
  const RunRecord record = run(task + on("virtual", 4));
  for (const NodeReport& node : record.nodes) EXPECT_EQ(node.freshness.staleness_max, 3);
}

TEST(AsynchronousPipeline, OfOneStageIsOneWorkerAlone) {
  const Settings task = task_in_stages();
  EXPECT_EQ(checksum(task + kAsynchronous + on("process", 1)),
            checksum(task + Settings{"strategy.kind=solo"} + on("process", 1)));
}

// The last stage is up to date; each one before it is an update further behind.
TEST(AsynchronousPipeline, ReportsStaleness) {
  const RunRecord record = run(task_in_stages() + kAsynchronous + on("virtual", 4));
  ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
  for (const NodeReport& node : record.nodes) {
    EXPECT_EQ(node.freshness.staleness_max, 3 - node.rank);
    EXPECT_LE(node.freshness.staleness_mean, 3 - node.rank);
    EXPECT_EQ(node.freshness.count, node.steps);
    if (node.rank > 0) {
      EXPECT_GT(record.nodes[0].freshness.age_mean_s, node.freshness.age_mean_s) << node.rank;
    }
  }
  EXPECT_GT(record.nodes[0].freshness.staleness_mean, 2);
}

// Nobody waits between batches: with as many batches as fill it, the pipeline hardly idles.
TEST(AsynchronousPipeline, HasNoBubbleBetweenBatches) {
  const Settings task = {"task.data.kind=synthetic-classes",
                         "task.data.samples=4096",
                         "task.data.features=64",
                         "task.data.classes=64",
                         "task.model.kind=mlp",
                         "task.model.hidden=[64, 64, 64]",
                         "task.global_batch=32",
                         "task.max_steps=96",
                         "task.eval_every=10",
                         "strategy.kind=pipeline",
                         "cluster.fabric=virtual",
                         "cluster.workers=4",
                         "cluster.speed=\"1 MFLOP/s\"",
                         "cluster.step_overhead=0",
                         "cluster.layer_overhead=0",
                         "cluster.bandwidth=\"1 GB/s\"",
                         "cluster.latency=\"1 us\"",
                         "cluster.cost_only=true"};
  const auto bubble = [&](const Settings& schedule) {
    const RunRecord record = run(task + schedule);
    EXPECT_EQ(record.status, RunStatus::kDone) << record.error;
    return record.nodes[0].extra.figures.at("pipeline_bubble");
  };
  EXPECT_LT(bubble({"strategy.schedule=asynchronous"}), 0.05);
  EXPECT_GT(bubble({"strategy.schedule=gpipe", "strategy.micro_batches=4"}), 0.4);
}

TEST(WeightStash, GivesBackWhatItKeptAndNoticesIfItDoesNot) {
  std::vector<float> weights = {1, 2, 3};
  WeightStash stash(weights, 2, Arithmetic());
  stash.keep(0);
  weights = {4, 5, 6};
  stash.updated();
  stash.keep(1);
  EXPECT_EQ(stash.missed(0), 1);
  EXPECT_EQ(stash.missed(1), 0);
  {
    const WeightStash::Borrowed borrowed(stash, 0);
    EXPECT_EQ(weights, (std::vector<float>{1, 2, 3}));
  }
  EXPECT_EQ(weights, (std::vector<float>{4, 5, 6}));
  {
    const WeightStash::Borrowed borrowed(stash, 0);
    weights[1] = 7;  // what was kept is not what it was any more
  }
  EXPECT_THROW(WeightStash::Borrowed(stash, 0), std::logic_error);
}

}  // namespace
}  // namespace tutti
