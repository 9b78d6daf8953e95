// Losing peers in decentralised training: synchronous strategies end and name the peer,
// asynchronous ones go on without it, and under random faults and stragglers nobody ever hangs.
#include <gtest/gtest.h>

#include "core/random.h"
#include "jobs/parameters_file.h"
#include "jobs/recorded_run.h"
#include "tests/support/faults.h"
#include "tests/support/parameters.h"
#include "tests/support/thorough.h"

namespace tutti {
namespace {

using namespace testing_support;

// Far more patience than the slowest straggler asks for: who still waits in vain is in a deadlock.
Settings on_virtual(int64_t workers) {
  return {"cluster.fabric=virtual",       "cluster.workers=" + std::to_string(workers),
          "cluster.step_overhead=0",      "cluster.layer_overhead=0",
          "cluster.speed=\"10 MFLOP/s\"", "cluster.timeout=2000",
          "cluster.detect=0.05"};
}

class Synchronous : public testing::TestWithParam<Settings> {};

TEST_P(Synchronous, EverySurvivorNamesTheLostPeer) {
  for (const int64_t victim : {0, 2, 4}) {
    Job job = load_job("", logistic_task() + GetParam() + on_virtual(5));
    job.cluster.faults.push_back({.at_s = 0.003, .nodes = {victim}});
    const RunRecord record = run_job(job);
    EXPECT_EQ(record.exit_code, kExitPeerLost);
    for (int64_t rank = 0; rank < 5; ++rank) {
      const NodeOutcome& outcome = record.outcomes[static_cast<size_t>(rank)];
      if (rank == victim) continue;
      EXPECT_EQ(outcome.lost_peer, victim) << outcome.error;
      EXPECT_NE(outcome.error.find("at step"), std::string::npos) << outcome.error;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Synchronous,
    testing::Values(Settings{"strategy.kind=local_sgd", "strategy.sync_every=4"},
                    Settings{"strategy.kind=local_sgd", "strategy.sync_every=4",
                             "strategy.fragments=2", "strategy.overlap=1"},
                    Settings{"strategy.kind=model_averaging", "strategy.merge_every=0.2"},
                    Settings{"strategy.kind=elastic_averaging"}, Settings{"strategy.kind=gossip"},
                    Settings{"strategy.kind=gossip", "strategy.order=combine_then_adapt",
                             "strategy.graph=one_peer_exponential"}));

class Asynchronous : public testing::TestWithParam<Settings> {};

TEST_P(Asynchronous, GoesOnWithoutALostWorker) {
  for (const int64_t victim : {0, 1, 3}) {
    Job job =
        load_job("", logistic_task() + GetParam() + on_virtual(5) + Settings{"task.epochs=10"});
    job.cluster.faults.push_back({.at_s = 0.003, .nodes = {victim}});
    const RunRecord record = run_job(job);
    EXPECT_EQ(record.status, RunStatus::kDone) << record.error;
    EXPECT_EQ(record.exit_code, 0);
    ASSERT_EQ(record.nodes.size(), 4u);
    for (const NodeReport& node : record.nodes) {
      EXPECT_EQ(node.parameters_sha256, record.nodes[0].parameters_sha256);
      EXPECT_GT(node.test_quality, 0.9);
    }
    // The lost worker's samples are made up for by the others.
    EXPECT_GE(record.evaluations.back().epoch, 10);
  }
}

// Each takes over from the one before it: the centre, the measurements and the end.
TEST_P(Asynchronous, GoesOnWithoutTheFirstThree) {
  Job job = load_job("", logistic_task() + GetParam() + on_virtual(5) +
                             Settings{"task.epochs=10", "task.eval_every=0.5"});
  for (const int64_t victim : {0, 1, 2})
    job.cluster.faults.push_back(
        {.at_s = 0.003 + 0.002 * static_cast<double>(victim), .nodes = {victim}});
  const RunRecord record = run_job(job);
  EXPECT_EQ(stated_outcome(record.outcomes), "llldd");
  EXPECT_EQ(record.status, RunStatus::kDone) << record.error;
  ASSERT_EQ(record.nodes.size(), 2u);
  EXPECT_EQ(record.nodes[0].parameters_sha256, record.nodes[1].parameters_sha256);
  EXPECT_GT(record.nodes[0].test_quality, 0.9);
  EXPECT_GT(record.evaluations.size(), 10u);
  EXPECT_GE(record.evaluations.back().epoch, 10);
}

TEST_P(Asynchronous, AWorkerThatComesBackTakesNoPart) {
  for (const int64_t victim : {0, 2}) {
    Job job =
        load_job("", logistic_task() + GetParam() + on_virtual(4) + Settings{"task.epochs=10"});
    job.cluster.faults.push_back({.at_s = 0.003, .nodes = {victim}, .restart_s = 0.002});
    TemporaryFolder folder;
    const std::atomic<bool> never{false};
    const RunRecord record = launch(job, {.out = folder / "run"}, never);
    EXPECT_EQ(record.status, RunStatus::kDone) << record.error;
    EXPECT_GT(record.nodes[1].test_quality, 0.9);
    // What is kept is what the others have agreed on.
    const Architecture architecture =
        architecture_of(job, load_data(job.task.data, job.task.seed, job.base_dir));
    std::vector<float> kept(architecture.parameter_count);
    load_parameters(folder / "run/parameters.safetensors", architecture, kept);
    EXPECT_EQ(parameters_sha256(architecture, kept), record.nodes[1].parameters_sha256);
    EXPECT_EQ(read_recorded_run(folder / "run/run.json").parameters_sha256,
              record.nodes[1].parameters_sha256);
  }
}

Job random_job(const Settings& strategy, uint64_t seed) {
  Random random(seed, Stream::kFault);
  const auto workers = static_cast<int64_t>(2 + random.below(7));
  const char* graphs[] = {"ring", "one_peer_exponential", "exponential", "random_match",
                          "complete"};
  Settings settings = logistic_task() + strategy + on_virtual(workers) +
                      Settings{"task.seed=" + std::to_string(seed), "task.epochs=3"};
  const std::string graph = graphs[random.below(5)];
  if (strategy[0].ends_with("gossip")) settings.push_back("strategy.graph=" + graph);
  // Small messages are eager, large ones wait for their receive: both must be free of cycles.
  if (random.below(2)) settings.push_back("task.data.features=5000");
  Job job = load_job("", settings);
  const double length_s = random.uniform() * 0.1;
  for (uint64_t i = random.below(4); i > 0; --i) {
    constexpr FaultKind kKinds[] = {FaultKind::kCrash, FaultKind::kLinkDown, FaultKind::kPartition};
    FaultConfig fault;
    fault.kind = kKinds[random.below(3)];
    fault.at_s = random.uniform() * length_s;
    fault.nodes = {static_cast<int64_t>(random.below(static_cast<uint64_t>(workers)))};
    if (fault.kind != FaultKind::kCrash)
      fault.duration_s = random.below(2) ? random.uniform() * 0.1 : 0;
    job.cluster.faults.push_back(fault);
  }
  if (random.below(2))
    job.cluster.stragglers.push_back({.kind = StragglerKind::kRandom,
                                      .factor = 5,
                                      .probability = 0.2,
                                      .distribution = Slowness::kExponential});
  if (random.below(2))
    job.cluster.stragglers.push_back(
        {.node = static_cast<int64_t>(random.below(static_cast<uint64_t>(workers))), .factor = 20});
  return job;
}

TEST_P(Asynchronous, AHundredRandomSchedulesEndInAStatedOutcome) {
  int whole = 0, survived = 0, ended = 0;
  for (uint64_t seed = 1; seed <= seeds(100, 500); ++seed) {
    Job job = random_job(GetParam(), seed);
    const RunRecord record = run_job(job);
    const std::string outcome = stated_outcome(record.outcomes);
    ASSERT_EQ(outcome.find_first_not_of("dlf"), std::string::npos)
        << "seed " << seed << ": " << outcome;
    if (record.status != RunStatus::kDone)
      ++ended;
    else if (outcome.find('l') != std::string::npos)
      ++survived;
    else
      ++whole;
  }
  // The schedules must exercise every end, or the test shows nothing.
  EXPECT_GT(whole, 10);
  EXPECT_GT(survived, 10);
  EXPECT_GT(ended, 2);  // few: any worker may be lost
}

// One is lost in training and another while the rest test the result: the first of them notices,
// measures alone and ends, and the last must not wait for it.
TEST(ElasticAveraging, ASecondLossWithinTheTestEndsNobodysPatience) {
  Job job = random_job({"strategy.kind=elastic_averaging", "strategy.mode=async"}, 338);
  EXPECT_EQ(stated_outcome(run_job(job).outcomes), "dldl");
}

TEST_P(Asynchronous, ReplaysExactly) {
  for (const uint64_t seed : {5u, 23u, 71u}) {
    Job first = random_job(GetParam(), seed), second = random_job(GetParam(), seed);
    const RunRecord a = run_job(first), b = run_job(second);
    EXPECT_EQ(stated_outcome(a.outcomes), stated_outcome(b.outcomes));
    ASSERT_EQ(a.nodes.size(), b.nodes.size());
    for (size_t i = 0; i < a.nodes.size(); ++i) EXPECT_EQ(to_text(a.nodes[i]), to_text(b.nodes[i]));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Asynchronous,
                         testing::Values(Settings{"strategy.kind=gossip", "strategy.mode=async"},
                                         Settings{"strategy.kind=elastic_averaging",
                                                  "strategy.mode=async"}));

}  // namespace
}  // namespace tutti
