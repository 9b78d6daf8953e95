// Tests fixed costs: every pass over a batch and every layer of it is charged once, whichever
// strategy runs it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/shard.h"
#include "tests/support/jobs.h"

namespace tutti {
namespace {

using namespace testing_support;

constexpr double kPass_s = 1e-3, kLayer_s = 1e-5;

Settings overhead_task(const Settings& more) {
  return Settings{"task.data.kind=synthetic-classes",
                  "task.data.samples=600",
                  "task.data.validation=0.1",
                  "task.data.features=16",
                  "task.data.classes=4",
                  "task.model.kind=mlp",
                  "task.model.hidden=[32, 32]",
                  "task.global_batch=32",
                  "task.epochs=4",
                  "task.eval_every=1000",
                  "optimizer.kind=sgd",
                  "cluster.fabric=virtual",
                  "cluster.workers=4",
                  "cluster.speed=10 GFLOP/s",
                  "cluster.cost_only=true"} +
         more;
}

double computing_s(const Settings& settings) {
  const RunRecord record = run(settings);
  EXPECT_EQ(record.status, RunStatus::kDone) << record.error;
  double sum_s = 0;
  for (const NodeReport& node : record.nodes) sum_s += node.compute_s;
  return sum_s;
}

// Returns the time that these overheads add to ten steps, over all nodes. Evaluation, which all
// runs do once, is left out.
double ten_steps_s(const Settings& job, const std::string& pass, const std::string& layer) {
  const Settings with =
      job + Settings{"cluster.step_overhead=" + pass, "cluster.layer_overhead=" + layer};
  const Settings without = job + Settings{"cluster.step_overhead=0", "cluster.layer_overhead=0"};
  const Settings more = {"task.max_steps=11"}, less = {"task.max_steps=1"};
  return computing_s(with + more) - computing_s(with + less) -
         (computing_s(without + more) - computing_s(without + less));
}

void expect_charged(const Settings& job, double passes, double layers) {
  const double slower = kReferenceFlops / 10e9;
  const std::string name = job[job.size() - 1];
  EXPECT_NEAR(ten_steps_s(job, "1 ms", "0"), 10 * slower * passes * kPass_s, 1e-6) << name;
  EXPECT_NEAR(ten_steps_s(job, "0", "10 us"), 10 * slower * layers * kLayer_s, 1e-6) << name;
}

TEST(Overhead, EveryPassAndEveryLayerIsChargedOnce) {
  const Job job = load_job("", overhead_task({"strategy.kind=allreduce"}));
  const auto layers = static_cast<double>(resolve(job).architecture.layers.size());
  // A gradient is a pass through all layers, forward and backward.
  expect_charged(overhead_task({"cluster.workers=1", "strategy.kind=solo"}), 1, 2 * layers);
  expect_charged(overhead_task({"strategy.kind=allreduce"}), 4, 4 * 2 * layers);
  expect_charged(overhead_task({"strategy.bucket=1 kB", "strategy.kind=allreduce"}), 4,
                 4 * 2 * layers);
  expect_charged(overhead_task({"strategy.kind=parameter_server"}), 4, 4 * 2 * layers);
  expect_charged(overhead_task({"strategy.kind=gossip"}), 4, 4 * 2 * layers);
  expect_charged(
      overhead_task({"task.deterministic=true", "task.lanes=8", "strategy.kind=allreduce"}), 8,
      8 * 2 * layers);
}

TEST(Overhead, StagesAndShardsBeginEveryMicroBatch) {
  const Job job = load_job("", overhead_task({"strategy.kind=allreduce"}));
  const Architecture whole = resolve(job).architecture;
  const auto layers = static_cast<double>(whole.layers.size());
  // Each of the three stages begins each of the five micro-batches.
  const Settings pipeline = {"cluster.workers=3", "strategy.micro_batches=5",
                             "strategy.kind=pipeline"};
  expect_charged(overhead_task(pipeline), 3 * 5, 5 * 2 * layers);
  // Recomputing is a second forward pass.
  expect_charged(overhead_task(Settings{"strategy.recompute=true"} + pipeline), 2 * 3 * 5,
                 5 * 3 * layers);
  const auto part = static_cast<double>(shard_of(whole, 0, 2).layers.size());
  expect_charged(overhead_task({"cluster.workers=2", "strategy.kind=tensor"}), 2, 2 * 2 * part);
}

// The second batch has two samples for four workers.
TEST(Overhead, AnEmptyBatchCostsNothing) {
  const Settings task = overhead_task({"strategy.kind=allreduce", "cluster.step_overhead=1 ms",
                                       "task.max_steps=2", "task.data.samples=80"});
  const Job job = load_job("", task);
  const size_t samples = resolve(job).data.splits.train.size();
  const RunRecord record = run(task + Settings{fmt::format("task.global_batch={}", samples - 2)});
  ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
  EXPECT_GT(record.nodes[1].compute_s, 2 * 2e-3);  // two steps, at half the reference speed
  EXPECT_LT(record.nodes[3].compute_s, 2 * 2e-3);
  EXPECT_GT(record.nodes[3].compute_s, 2e-3);
}

}  // namespace
}  // namespace tutti
