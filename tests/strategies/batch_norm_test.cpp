// Running statistics travel with gradients and parameters, so every strategy merges them.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "strategies/strategy.h"
#include "tests/strategies/equivalence.h"
#include "tests/support/rounding.h"

namespace tutti {
namespace {

using namespace testing_support;

Settings batch_norm_task(const std::string& limit) {
  return {"task.data=fashion-mnist",   "task.data.limit=" + limit,    "task.model.kind=resnet20",
          "task.model.channels=[4,8]", "task.model.blocks=1",         "task.model.norm=batch",
          "task.model.ghost_batch=4",  "task.global_batch=16",        "optimizer.lr=0.05",
          "optimizer.kind=nesterov",   "optimizer.weight_decay=1e-3", "cluster.timeout=60"};
}

const Settings kTwoSteps = {"task.max_steps=2"};
const Settings kLanes = {"task.deterministic=true", "task.lanes=4"};

TEST(BatchNorm, IsBitwiseSoloWhereLanesAreFixed) {
  const Settings task = batch_norm_task("64") + kTwoSteps + kLanes;
  const std::string expected = checksum(task + solo() + on("process", 1));
  const Settings ring = {"strategy.kind=allreduce", "strategy.topology=ring"};
  const Settings servers = {"strategy.kind=parameter_server", "strategy.servers=3"};
  const Settings pipeline = {"strategy.kind=pipeline"};
  EXPECT_EQ(checksum(task + ring + on("process", 2)), expected);
  EXPECT_EQ(checksum(task + ring + on("virtual", 3)), expected);
  EXPECT_EQ(checksum(task + servers + on("virtual", 2)), expected);
  EXPECT_EQ(checksum(task + pipeline + on("virtual", 2)), expected);
  EXPECT_EQ(checksum(task + pipeline + on("virtual", 4) + Settings{"strategy.recompute=true"}),
            expected);
}

// Without lanes: four workers with four samples each normalise the ghost batches of one worker.
TEST(BatchNorm, IsSoloUpToRoundingWhereSharesAreGhostBatches) {
  const Settings task = batch_norm_task("64") + kTwoSteps;
  // A gradient sums over all pixels of the batch.
  const RoundingBound bound(task, solo() + on("process", 1), 16 * 28 * 28);
  for (const char* kind : {"allreduce", "parameter_server", "local_sgd"})
    bound.expect_close(
        parameters_after(
            task + on("virtual", 4) + Settings{"strategy.kind=" + std::string(kind)} +
            (kind == std::string("local_sgd") ? Settings{"strategy.sync_every=1"} : Settings{})),
        kind);
}

struct Statistics {
  std::vector<float> means, variances;
};

Statistics statistics_after(const Settings& settings) {
  const Job job = load_job("", settings);
  const Data data = load_data(job.task.data, job.task.seed, job.base_dir);
  const std::vector<float> parameters = parameters_after(settings);
  Statistics result;
  for (const Parameter& parameter : architecture_of(job, data).parameters) {
    if (parameter.running_rate == 0) continue;
    auto& values = parameter.name.ends_with("running_mean") ? result.means : result.variances;
    values.insert(values.end(),
                  parameters.begin() + static_cast<std::ptrdiff_t>(parameter.range.begin),
                  parameters.begin() + static_cast<std::ptrdiff_t>(parameter.range.end));
  }
  return result;
}

Settings place_for(std::string_view strategy) {
  if (strategy == "solo") return on("virtual", 1);
  if (strategy == "early_exit") return on("virtual", 3);
  if (strategy == "hogwild") return on("process", 2);
  return on("virtual", 4);
}

// Every strategy that can train a dense model, as it takes part in comparisons.
TEST(BatchNorm, IsTrainedByEveryStrategy) {
  const Settings task = batch_norm_task("320") + Settings{"task.epochs=1"};
  std::set<std::string_view> kinds;
  for (const StrategyEntry& entry : strategy_catalog())
    for (const Variant& variant : entry.variants()) {
      Settings settings =
          task + place_for(entry.name) + Settings{"strategy.kind=" + std::string(entry.name)};
      for (const std::string& setting : variant.settings) settings.push_back("strategy." + setting);
      if (!refusal(settings).empty()) continue;
      SCOPED_TRACE(variant.name);
      const Statistics statistics = statistics_after(settings);
      ASSERT_FALSE(statistics.variances.empty());
      size_t at_start = 0;
      for (const float mean : statistics.means) at_start += mean == 0;
      for (const float variance : statistics.variances) {
        EXPECT_GT(variance, 0);
        at_start += variance == 1;
      }
      EXPECT_EQ(at_start, 0U) << "statistics that nobody moved";
      kinds.insert(entry.name);
    }
  for (const StrategyEntry& entry : strategy_catalog())
    EXPECT_EQ(kinds.contains(entry.name), entry.name != "scheduled") << entry.name;
}

// Parameters hardly move here, so the statistics are a function of the data alone: whatever weighs,
// corrects or extrapolates what clients and workers learned must leave them their plain mean.
void expect_close(const Statistics& actual, const Statistics& expected) {
  ASSERT_EQ(actual.means.size(), expected.means.size());
  for (size_t i = 0; i < expected.means.size(); ++i) {
    EXPECT_NEAR(actual.means[i], expected.means[i], 1e-5) << i;
    EXPECT_NEAR(actual.variances[i], expected.variances[i], 1e-5 * expected.variances[i]) << i;
  }
}

void expect_same_statistics(const Settings& task, const Settings& plain, const Settings& other) {
  expect_close(statistics_after(task + other), statistics_after(task + plain));
}

const Settings kStill = {"optimizer.kind=sgd", "optimizer.lr=1e-9", "optimizer.weight_decay=0"};

TEST(BatchNorm, ClientsAreAveragedPlainlyByEveryFederatedAlgorithm) {
  const Settings task = batch_norm_task("240") + kStill + on("virtual", 2) +
                        Settings{"strategy.kind=federated_averaging", "strategy.clients=6",
                                 "strategy.split={kind=\"dirichlet\", alpha=0.5}",
                                 "strategy.client_batch=8", "task.max_steps=3"};
  const Settings plain = {"strategy.algorithm=fedavg"};
  expect_same_statistics(task, plain, {"strategy.algorithm=fednova"});
  expect_same_statistics(task, plain, {"strategy.algorithm=scaffold"});
  expect_same_statistics(task, plain, {"strategy.proximal=10"});
  expect_same_statistics(task, plain, {"strategy.server={kind=\"adam\", lr=0.1}"});
  expect_same_statistics(task, plain, {"strategy.server={kind=\"momentum\", lr=0.5}"});
}

// A batch that comes back finds other statistics than it left behind; they move from where they
// are.
TEST(BatchNorm, AnAsynchronousPipelineFollowsEachBatchOnce) {
  const Settings task = batch_norm_task("240") + kStill;
  const Settings pipeline = {"strategy.kind=pipeline", "strategy.schedule=asynchronous",
                             "strategy.micro_batches=0"};
  const Statistics expected = statistics_after(task + solo() + on("virtual", 1));
  expect_close(statistics_after(task + pipeline + on("virtual", 4)), expected);
}

// Workers that pull seldom push what they learned late, but never more than there was to learn: a
// push of 32 steps that each count for a tenth would throw the statistics three times too far.
TEST(BatchNorm, WorkersThatPullSeldomEndWhereTheDataIs) {
  const Settings task = batch_norm_task("640") + kStill + Settings{"task.epochs=14"};
  const Statistics expected = statistics_after(task + solo() + on("virtual", 1));
  const Statistics actual =
      statistics_after(task + on("virtual", 4) +
                       Settings{"strategy.kind=parameter_server", "strategy.pull_every=32"});
  // Both are means of what some of the last batches had, which differ by less than half.
  for (size_t i = 0; i < expected.variances.size(); ++i) {
    EXPECT_NEAR(actual.variances[i], expected.variances[i], 0.5 * expected.variances[i]) << i;
    EXPECT_NEAR(actual.means[i], expected.means[i], 0.5 * std::sqrt(expected.variances[i])) << i;
  }
}

// Neighbours that only exchange gradients drift apart, but not ever faster.
TEST(BatchNorm, NeighboursThatExchangeGradientsFollowTheirOwnSamples) {
  const RunRecord record = run(batch_norm_task("240") + kStill + on("virtual", 4) +
                               Settings{"strategy.kind=gossip", "strategy.graph=ring",
                                        "strategy.exchange=gradients", "task.epochs=20"});
  ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
  const auto& distances = record.nodes.front().extra.series.at("consensus_distance").points;
  ASSERT_GE(distances.size(), 20U);
  // By -1/3 of the distance at each of 15 steps: 1.6 times as far after each epoch.
  EXPECT_LT(distances[19].second, 3 * distances[4].second);
}

TEST(BatchNorm, WorkersAreAveragedPlainlyByEveryOuterOptimizer) {
  const Settings task = batch_norm_task("240") + kStill + on("virtual", 3) +
                        Settings{"strategy.kind=local_sgd", "strategy.sync_every=3"};
  const Settings plain = {"strategy.outer={kind=\"sgd\", lr=1}"};
  expect_same_statistics(task, plain, {"strategy.outer={kind=\"nesterov\", lr=0.5, momentum=0.5}"});
  expect_same_statistics(task, plain, {"strategy.outer={kind=\"adam\", lr=1e-9}"});
}

TEST(BatchNorm, ComparisonsShareNoCurveWhereSharesMayDiffer) {
  const auto class_of = [](const Settings& settings) {
    return resolve(load_job("", settings)).plan.equivalence;
  };
  const Settings ring = {"strategy.kind=allreduce", "strategy.topology=ring"};
  EXPECT_EQ(class_of(batch_norm_task("64") + ring), "");
  EXPECT_NE(class_of(batch_norm_task("64") + ring + kLanes), "");
  EXPECT_NE(class_of(logistic_task() + ring), "");
}

}  // namespace
}  // namespace tutti
