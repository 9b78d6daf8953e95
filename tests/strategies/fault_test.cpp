// Faults in virtual time: every run ends in a stated outcome, replays, never hangs, and leaves
// whole steps behind.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/random.h"
#include "fabric/exchange.h"
#include "jobs/plugins.h"
#include "tests/support/faults.h"
#include "tests/support/parameters.h"
#include "tests/support/thorough.h"

namespace tutti {
namespace {

using namespace testing_support;

Job random_job(uint64_t seed) {
  Random random(seed, Stream::kFault);
  const char* topologies[] = {"ring", "butterfly", "tree", "all_to_all", "hierarchical", "direct"};
  const std::string topology = topologies[random.below(6)];
  const auto workers = static_cast<int64_t>(2 + random.below(7));
  Settings settings = logistic_task() + Settings{"task.seed=" + std::to_string(seed),
                                                 "cluster.fabric=virtual",
                                                 "cluster.workers=" + std::to_string(workers),
                                                 "cluster.step_overhead=0",
                                                 "cluster.layer_overhead=0",
                                                 "cluster.speed=\"10 MFLOP/s\"",
                                                 "cluster.timeout=20",
                                                 "cluster.detect=0.05",
                                                 "strategy.topology=" + topology};
  if (topology == "direct") settings.push_back("cluster.nodes_per_host=" + std::to_string(workers));
  if (topology == "hierarchical") settings.push_back("cluster.racks=2");
  Job job = load_job("", settings);
  const uint64_t faults = random.below(4);
  for (uint64_t i = 0; i < faults; ++i) {
    FaultConfig fault;
    constexpr FaultKind kKinds[] = {FaultKind::kCrash, FaultKind::kLinkDown, FaultKind::kPartition};
    fault.kind = topology == "direct" ? FaultKind::kCrash : kKinds[random.below(3)];
    fault.at_s = random.uniform() * 0.05;
    fault.nodes = {static_cast<int64_t>(random.below(static_cast<uint64_t>(workers)))};
    const double heals_s = random.below(2) ? random.uniform() * 0.1 : 0;
    (fault.kind == FaultKind::kCrash ? fault.restart_s : fault.duration_s) = heals_s;
    job.cluster.faults.push_back(fault);
  }
  if (random.below(2))
    job.cluster.stragglers.push_back({.kind = StragglerKind::kRandom,
                                      .factor = 5,
                                      .probability = 0.2,
                                      .distribution = Slowness::kExponential});
  return job;
}

TEST(RandomFaults, TwoHundredSchedulesEndInAStatedOutcome) {
  int done = 0, ended_by_loss = 0;
  for (uint64_t seed = 1; seed <= seeds(200, 1000); ++seed) {
    Job job = random_job(seed);
    const RunRecord record = run_job(job);
    const std::string outcome = stated_outcome(record.outcomes);
    ASSERT_EQ(outcome.find_first_not_of("dlf"), std::string::npos)
        << "seed " << seed << ": " << outcome;
    // Synchronous training ends for all or for none, unless the fault came after the end.
    if (record.status == RunStatus::kDone)
      ++done;
    else
      ++ended_by_loss;
    if (outcome.find('f') != std::string::npos)
      for (const NodeOutcome& node : record.outcomes)
        if (node.kind == NodeOutcome::Kind::kFailed) {
          EXPECT_NE(node.error.find("step"), std::string::npos) << node.error;
        }
  }
  // The schedules must exercise both ends, or the test shows nothing.
  EXPECT_GT(done, 20);
  EXPECT_GT(ended_by_loss, 20);
}

TEST(RandomFaults, ReplayExactly) {
  for (const uint64_t seed : {3u, 17u, 42u, 99u}) {
    Job first = random_job(seed), second = random_job(seed);
    const RunRecord a = run_job(first), b = run_job(second);
    ASSERT_EQ(a.nodes.size(), b.nodes.size());
    EXPECT_EQ(stated_outcome(a.outcomes), stated_outcome(b.outcomes));
    for (size_t i = 0; i < a.nodes.size(); ++i) EXPECT_EQ(to_text(a.nodes[i]), to_text(b.nodes[i]));
  }
}

// The harness must be able to fail: two nodes that each wait for the other first, without a
// deadline or, as strategies do, with one.
std::string planted_deadlock(double timeout_s) {
  ClusterConfig cluster;
  cluster.fabric = FabricKind::kVirtual;
  const auto fabric = make_fabric(cluster, {"worker", "worker"}, 1);
  const std::atomic<bool> never{false};
  return stated_outcome(fabric->run(
      [&](Node& node) -> std::string {
        std::byte buffer[1];
        const Rank other = 1 - node.endpoint().rank();
        Handle handle = node.endpoint().receive(other, Tag(Purpose::kUser, 1), buffer);
        const double most_s = timeout_s > 0 ? timeout_s : node.timeout_s();
        require_done(node, node.endpoint().wait(handle, most_s));
        return "";
      },
      never));
}

TEST(RandomFaults, HarnessCatchesAPlantedDeadlock) {
  EXPECT_EQ(planted_deadlock(std::numeric_limits<double>::infinity()), "deadlock");
  const std::string verdict = planted_deadlock(0);
  EXPECT_TRUE(verdict.starts_with("waited in vain")) << verdict;
  EXPECT_NE(verdict.find_first_not_of("dlf"), std::string::npos) << verdict;
}

const char* const kTopologies[] = {"ring",       "butterfly",    "tree",
                                   "all_to_all", "hierarchical", "direct"};

Settings five_workers(const std::string& topology) {
  Settings settings =
      logistic_task() + Settings{"cluster.fabric=virtual",       "cluster.workers=5",
                                 "cluster.step_overhead=0",      "cluster.layer_overhead=0",
                                 "cluster.speed=\"10 MFLOP/s\"", "strategy.topology=" + topology};
  if (topology == "direct") settings.push_back("cluster.nodes_per_host=5");
  if (topology == "hierarchical") settings.push_back("cluster.racks=2");
  return settings;
}

RunRecord run_with_crash(const Settings& settings, double at_s, int64_t victim) {
  Job job = load_job("", settings);
  job.cluster.faults.push_back({.at_s = at_s, .nodes = {victim}});
  return run_job(job);
}

// One crash in the middle of each topology: everyone who is left names the same rank and a step.
TEST(Crash, EverySurvivorNamesTheLostPeerAndTheStep) {
  for (const char* topology : kTopologies)
    for (const int64_t victim : {0, 2, 4}) {
      const RunRecord record = run_with_crash(five_workers(topology), 0.003, victim);
      EXPECT_EQ(record.exit_code, kExitPeerLost) << topology;
      for (int64_t rank = 0; rank < 5; ++rank) {
        const NodeOutcome& outcome = record.outcomes[static_cast<size_t>(rank)];
        if (rank == victim) {
          EXPECT_EQ(outcome.kind, NodeOutcome::Kind::kLost);
          continue;
        }
        EXPECT_EQ(outcome.lost_peer, victim) << topology << ": " << outcome.error;
        EXPECT_NE(outcome.error.find("at step"), std::string::npos) << outcome.error;
      }
    }
}

std::string parameters_at(const Settings& settings, int64_t steps) {
  if (steps > 0) return checksum(settings + Settings{"task.max_steps=" + std::to_string(steps)});
  Job job = load_job("", settings);
  const Data data = load_data(job.task.data, job.task.seed, job.base_dir);
  const Architecture architecture = architecture_of(job, data);
  std::vector<float> parameters(architecture.parameter_count);
  initialise(architecture, job.task.seed, parameters);
  return parameters_sha256(architecture, parameters);
}

// A step commits as a whole: whenever a peer is lost, a survivor's parameters are those of a job
// that ends after as many steps as the survivor completed.
class Commit : public testing::TestWithParam<const char*> {
 protected:
  using Parameters = std::map<int64_t, std::string>;  // after so many steps

  // `after` collects what the reference has after the steps at which crashes found somebody.
  void expect_whole_steps(const Settings& settings, const Settings& reference, Parameters& after) {
    std::set<int64_t> met;
    for (const double at_s : {0.0004, 0.0015, 0.0026, 0.0037}) {
      const RunRecord record = run_with_crash(settings, at_s, 2);
      EXPECT_EQ(record.exit_code, kExitPeerLost) << record.error;
      EXPECT_EQ(record.nodes.size(), 4u) << "every survivor reports";
      for (const NodeReport& node : record.nodes) {
        met.insert(node.steps);
        if (!after.contains(node.steps)) after[node.steps] = parameters_at(reference, node.steps);
        EXPECT_EQ(node.parameters_sha256, after[node.steps])
            << "node " << node.rank << " after " << node.steps << " steps";
      }
    }
    EXPECT_GT(met.size(), 2u) << "crashes come in different steps";
  }

  const Settings job_ = five_workers(GetParam()) + Settings{"task.epochs=3"};
};

// Weights and biases are in a bucket each. The reference is the same job on the same cluster: so
// the bits are the same although the sums depend on their order.
TEST_P(Commit, SurvivorsHaveWholeStepsOfAllBuckets) {
  const Settings job = job_ + Settings{"strategy.bucket=4"};
  Parameters after;
  expect_whole_steps(job, job, after);
}

TEST_P(Commit, SurvivorsHaveWholeStepsOfExactSums) {
  static Parameters after;  // one worker alone has the same bits as all topologies
  const Settings task = logistic_task() + Settings{"task.epochs=3", "task.deterministic=true"};
  expect_whole_steps(
      job_ + Settings{"task.deterministic=true"},
      task + Settings{"strategy.kind=solo", "cluster.workers=1", "cluster.fabric=virtual"}, after);
}

INSTANTIATE_TEST_SUITE_P(Topologies, Commit, testing::ValuesIn(kTopologies),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace tutti
