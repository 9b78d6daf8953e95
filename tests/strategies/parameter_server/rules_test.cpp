// Compares the rules of updates with computations by hand, and counts the steps of a run.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/strategies/parameter_server/runs.h"
#include "tests/support/linear_reference.h"

namespace tutti {
namespace {

using namespace testing_support;

Settings few_steps(const std::string& consistency, int pull_every) {
  return logistic_task() + servers(2, consistency) +
         Settings{"task.data.samples=400", "task.global_batch=150", "task.epochs=4",
                  "strategy.pull_every=" + std::to_string(pull_every)};
}

// 324 training samples make 3 steps per epoch, so the steps of a pull continue into the next
// epochs, and the remaining ones are pushed at the end.
TEST(PullEvery, GoesOnAcrossEpochs) {
  for (const std::string fabric : {"virtual", "process"})
    for (const std::string consistency : {"bsp", "ssp"})
      for (const int pull_every : {4, 5}) {
        Job job = load_job("", few_steps(consistency, pull_every) + cluster(fabric, 3));
        const RunRecord record = run_job(job);
        ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
        EXPECT_EQ(counter(record, "workers_expelled") + counter(record, "pushes_dropped"), 0);
        const EvaluationRow& last = record.evaluations.back();
        EXPECT_EQ(last.samples, 4 * 324);
        EXPECT_EQ(last.step, 12);
        EXPECT_NEAR(last.epoch, 4, 1e-9);
        // There is a push for each of three pulls and one for the steps since, from 3 workers to 2
        // servers.
        if (consistency == "bsp") {
          EXPECT_EQ(counter(record, "pushes_applied"), 2 * 3 * 4);
        }
      }
}

// Whenever a worker is lost, another one computes what is missing of its step. This holds even for
// the last push, when all others have nothing more to compute.
TEST(PullEvery, GoesOnWithoutALostWorker) {
  for (int tenth_ms = 0; tenth_ms < 300; tenth_ms += 20) {
    Job job = load_job("", few_steps("bsp", 3) + cluster("virtual", 3) +
                               Settings{"task.epochs=1", "cluster.timeout=5"});
    job.cluster.faults.push_back({.at_s = tenth_ms * 1e-4, .nodes = {2}});
    const RunRecord record = run_job(job);
    EXPECT_EQ(record.status, RunStatus::kDone) << tenth_ms << " " << record.error;
    EXPECT_EQ(counter(record, "workers_expelled"), 0) << tenth_ms;
  }
}

TEST(Backup, TakesAsManyStepsAsItIsTold) {
  for (const int backup : {1, 2}) {
    Job job =
        load_job("", logistic_task() + servers(2, "backup") + cluster("virtual", 5) +
                         Settings{"task.global_batch=40", "task.max_steps=10", "task.epochs=2",
                                  "strategy.backup=" + std::to_string(backup)});
    job.cluster.stragglers.push_back(
        {.kind = StragglerKind::kRandom, .factor = 10, .probability = 0.1});
    const RunRecord record = run_job(job);
    ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
    EXPECT_EQ(counter(record, "steps_closed"), 2 * 10);
    EXPECT_EQ(counter(record, "pushes_applied"), 2 * 10 * (5 - backup));
    EXPECT_EQ(record.evaluations.back().step, 10);
  }
}

// One worker of two is a hundred times faster than the other. It computes parts (0, 1), (1, 0) and
// (1, 1) of two batches, one after the other, before part (0, 0) of the slow one arrives. That part
// was computed on the initial parameters.
Settings fast_and_slow(const Settings& more) {
  return linear_task() + servers(1, "asp") +
         Settings{"cluster.fabric=virtual",
                  "cluster.workers=2",
                  "cluster.speed=\"1 kFLOP/s\"",
                  "cluster.speed_factors=[1.0, 100.0]",
                  "cluster.step_overhead=0",
                  "cluster.layer_overhead=0",
                  "task.max_steps=2"} +
         more;
}

struct ByHand {
  LinearReference reference;
  Vector initial = reference.initial(), x = initial;
  // Adds `weight` times the step that part `part` of batch `step` takes by itself at `at`.
  void add(double weight, int64_t step, int64_t part, const Vector& at) {
    const Vector stepped = reference.stepped(step, part, at);
    for (size_t k = 0; k < x.size(); ++k) x[k] += weight * (stepped[k] - at[k]);
  }
  void add(double weight, int64_t step, int64_t part) { add(weight, step, part, Vector(x)); }
};

TEST(Rate, ConstantByHand) {
  const Settings settings = fast_and_slow({});
  ByHand hand{LinearReference(settings)};
  hand.add(0.5, 0, 1);
  hand.add(0.5, 1, 0);
  hand.add(0.5, 1, 1);
  hand.add(0.5, 0, 0, hand.initial);
  expect_close(parameters_after(settings), hand.x);
}

// The slow worker misses three updates. With two workers that is a delay of a round and a half.
TEST(Rate, StalenessByHand) {
  const Settings settings = fast_and_slow({"strategy.rate=staleness"});
  ByHand hand{LinearReference(settings)};
  hand.add(0.5, 0, 1);
  hand.add(0.5, 1, 0);
  hand.add(0.5, 1, 1);
  hand.add(0.5 / 1.5, 0, 0, hand.initial);
  expect_close(parameters_after(settings), hand.x);
}

// ConSGD multiplies each local update by one constant.
TEST(Rate, UpdateWeightByHand) {
  const Settings settings = fast_and_slow({"strategy.update_weight=0.3"});
  ByHand hand{LinearReference(settings)};
  hand.add(0.3, 0, 1);
  hand.add(0.3, 1, 0);
  hand.add(0.3, 1, 1);
  hand.add(0.3, 0, 0, hand.initial);
  expect_close(parameters_after(settings), hand.x);
}

// With DynSGD the fast worker is alone at its clocks 0, 1 and 2 and counts in full. When the slow
// one comes to clock 0, both count half there. Replicas keep the same sums, so either server may be
// lost.
TEST(Rate, DynamicByHand) {
  const Settings settings =
      fast_and_slow({"strategy.rate=dynamic", "strategy.consistency=ssp", "strategy.staleness=9"});
  ByHand hand{LinearReference(settings)};
  hand.add(1, 0, 1);
  hand.add(1, 1, 0);
  hand.add(1, 1, 1);
  hand.add(0.5, 0, 0, hand.initial);
  hand.add(-0.5, 0, 1, hand.initial);
  expect_close(parameters_after(settings), hand.x);
  const Settings replicated = settings + Settings{"strategy.servers=2", "strategy.replicas=1",
                                                  "strategy.shards_per_server=1"};
  expect_close(parameters_after(replicated), hand.x);
  // A server is lost when the fast worker is done and the slow one is not.
  for (const char* faults :
       {"cluster.faults=[{ at = 0.1, nodes = [2] }]", "cluster.faults=[{ at = 0.1, nodes = [3] }]"})
    expect_close(parameters_after(replicated + Settings{faults}), hand.x);
}

// Whenever a server is lost, each weight is revised once: also when the other one takes over while
// the updates of clock 0 come in.
TEST(Rate, DynamicByHandWheneverAServerIsLost) {
  const Settings settings =
      fast_and_slow({"strategy.rate=dynamic", "strategy.consistency=ssp", "strategy.staleness=9",
                     "strategy.servers=2", "strategy.replicas=1", "strategy.shards_per_server=1"});
  ByHand hand{LinearReference(settings)};
  hand.add(1, 0, 1);
  hand.add(1, 1, 0);
  hand.add(1, 1, 1);
  hand.add(0.5, 0, 0, hand.initial);
  hand.add(-0.5, 0, 1, hand.initial);
  const double whole_s = trained(settings).record.nodes[0].total_s;
  for (int i = 1; i < 20; ++i)
    for (const int server : {2, 3})
      expect_close(parameters_after(settings + Settings{fmt::format(
                                                   "cluster.faults=[{{ at = {}, nodes = [{}] }}]",
                                                   whole_s * i / 20, server)}),
                   hand.x);
}

// One of three workers is lost at once, and the fast one takes over its part.
Settings with_a_lost_worker(const Settings& more) {
  return fast_and_slow({"cluster.workers=3", "cluster.speed=\"10 FLOP/s\"",
                        "cluster.speed_factors=[1.0, 20.0, 10.0]", "cluster.timeout=1000"}) +
         more;
}

// DynSGD does not keep its sums for a lost worker. A worker that comes back begins where the
// slowest is, so its update belongs to the clock of the slow worker and of the fast worker's first
// update.
TEST(Rate, DynamicByHandWithoutAWorkerAndWhenItIsBack) {
  const Settings settings = with_a_lost_worker(
      {"strategy.rate=dynamic", "strategy.consistency=ssp", "strategy.staleness=9"});
  ByHand lost{LinearReference(settings)};
  lost.add(1, 0, 2);
  lost.add(1, 0, 1);  // the lost worker's part
  for (const int part : {0, 1, 2}) lost.add(1, 1, part);
  lost.add(0.5, 0, 0, lost.initial);
  lost.add(-0.5, 0, 2, lost.initial);
  expect_close(
      parameters_after(settings + Settings{"cluster.faults=[{ at = 0.001, nodes = [2] }]"}),
      lost.x);

  ByHand back{LinearReference(settings)};
  back.add(1, 0, 2);
  back.add(1, 0, 1);
  const Vector read = back.x;  // read when it is back, between two updates of the fast one
  back.add(1, 1, 0);
  back.add(1, 1, 2);
  for (const auto& [step, part, at] :
       {std::tuple(0, 0, back.initial), std::tuple(1, 1, read), std::tuple(0, 2, back.initial)})
    back.add(1 / 3.0, step, part, at);
  back.add(-1, 0, 2, back.initial);
  expect_close(
      parameters_after(settings +
                       Settings{"cluster.faults=[{ at = 0.001, nodes = [2], restart = 1.4 }]"}),
      back.x);
}

// One worker makes three steps between two pulls. It steps by the job's optimizer, here momentum.
TEST(PullEvery, LocalUpdatesAreTheOptimizersByHand) {
  const Settings settings =
      linear_task() + servers(1, "bsp") +
      Settings{"cluster.fabric=virtual", "cluster.workers=1",       "task.max_steps=3",
               "strategy.pull_every=3",  "optimizer.kind=momentum", "optimizer.momentum=0.9"};
  const LinearReference reference(settings);
  Vector own = reference.initial(), server = own, v(own.size()), pushed(own.size());
  Vector first;
  for (const int64_t step : {0, 1, 2}) {
    const Vector g = reference.gradient(step, 0, own);
    if (step == 0) first = g;
    for (size_t k = 0; k < own.size(); ++k) {
      if (step > 0) pushed[k] += g[k];
      v[k] = 0.9 * v[k] + g[k];
      own[k] -= 0.1 * v[k];
    }
  }
  for (size_t k = 0; k < own.size(); ++k)
    server[k] -= 0.1 * first[k] + 0.1 * (0.9 * first[k] + pushed[k]);
  expect_close(parameters_after(settings), server);
}

// The slow worker misses five updates. A round still has the three workers for which the batch was
// cut.
TEST(Rate, StalenessIsInRoundsOfTheWholeJob) {
  const Settings settings = with_a_lost_worker({"strategy.rate=staleness"});
  ByHand hand{LinearReference(settings)};
  hand.add(1 / 3.0, 0, 2);
  hand.add(1 / 3.0, 0, 1);  // the lost worker's part
  for (const int part : {0, 1, 2}) hand.add(1 / 3.0, 1, part);
  hand.add(1 / 3.0 / (5 / 3.0), 0, 0, hand.initial);
  const Settings fault = {"cluster.faults=[{ at = 0.001, nodes = [2] }]"};
  expect_close(parameters_after(settings + fault), hand.x);
}

}  // namespace
}  // namespace tutti
