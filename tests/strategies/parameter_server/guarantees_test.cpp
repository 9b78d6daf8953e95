// What every consistency model promises, on whole runs.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "jobs/run_record.h"
#include "tests/strategies/parameter_server/runs.h"

namespace tutti {
namespace {

using namespace testing_support;

Settings stragglers() {
  return {"task.data.samples=2000", "task.global_batch=40", "task.epochs=2"};
}

Job straggling_job(const Settings& settings) {
  Job job = load_job("", logistic_task() + stragglers() + settings);
  job.cluster.stragglers.push_back(
      {.kind = StragglerKind::kRandom, .factor = 10, .probability = 0.1});
  job.cluster.stragglers.push_back({.node = 1, .factor = 2});
  return job;
}

class EveryConsistency
    : public testing::TestWithParam<std::tuple<std::string, std::string, std::string>> {};

// Every sample is learnt from exactly once an epoch, nothing is applied twice, and all workers end
// with the same parameters.
TEST_P(EveryConsistency, LearnsFromEverySampleOnce) {
  const auto& [consistency, more, fabric] = GetParam();
  Settings settings = servers(2, consistency) + cluster(fabric, 4);
  if (!more.empty()) settings.push_back(more);
  Job job = fabric == "virtual" ? straggling_job(settings)
                                : load_job("", logistic_task() + stragglers() + settings);
  const RunRecord record = run_job(job);
  ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
  const auto& evaluations = record.evaluations;
  ASSERT_GE(evaluations.size(), 2u);
  const Data data = load_data(job.task.data, job.task.seed, job.base_dir);
  EXPECT_EQ(evaluations.back().samples, 2 * static_cast<int64_t>(data.splits.train.size()));
  EXPECT_NEAR(evaluations.back().epoch, 2, 1e-9);
  EXPECT_EQ(counter(record, "pushes_duplicated"), 0);
  EXPECT_EQ(counter(record, "stale_reads"), 0);
  EXPECT_EQ(counter(record, "workers_lost"), 0);
  EXPECT_EQ(counter(record, "workers_expelled"), 0);
  EXPECT_GT(counter(record, "pushes_applied"), 0);
  for (const NodeReport& node : record.nodes)
    if (node.role == "worker") {
      EXPECT_EQ(node.parameters_sha256, record.nodes.front().parameters_sha256);
    }
  EXPECT_GT(record.nodes.front().test_quality, 0.9);
}

INSTANTIATE_TEST_SUITE_P(All, EveryConsistency,
                         testing::Combine(testing::Values("bsp", "asp", "ssp", "adaptive",
                                                          "waiting", "backup"),
                                          testing::Values("", "strategy.servers=1"),
                                          testing::Values("virtual", "process")),
                         [](const auto& test) {
                           return std::get<0>(test.param) +
                                  (std::get<1>(test.param).empty() ? "2" : "1") +
                                  std::get<2>(test.param);
                         });
INSTANTIATE_TEST_SUITE_P(
    More, EveryConsistency,
    testing::Combine(testing::Values("ssp"),
                     testing::Values("strategy.prefetch=true", "strategy.pull_every=3",
                                     "strategy.rate=staleness", "strategy.rate=dynamic",
                                     "task.partition=disjoint", "strategy.shards=layers"),
                     testing::Values("virtual", "process")),
    [](const auto& test) { return std::to_string(test.index); });
INSTANTIATE_TEST_SUITE_P(MoreBsp, EveryConsistency,
                         testing::Combine(testing::Values("bsp"),
                                          testing::Values("strategy.pull_every=4",
                                                          "task.partition=reshuffle"),
                                          testing::Values("virtual", "process")),
                         [](const auto& test) { return std::to_string(test.index); });

TEST(Backup, TakesExactlyAllButTheLateInEveryStep) {
  // 5 workers, 4 of them count; batches that divide evenly.
  Job job = straggling_job(servers(2, "backup") + cluster("virtual", 5));
  const RunRecord record = run_job(job);
  ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
  const int64_t steps = counter(record, "steps_closed");
  const Data data = load_data(job.task.data, job.task.seed, job.base_dir);
  const auto batches = (static_cast<int64_t>(data.splits.train.size()) + 39) / 40;
  const int64_t hands = batches * 5 * 2 * 2;  // epochs, servers
  EXPECT_EQ(counter(record, "pushes_applied"), hands);
  // The last step of each epoch takes what is left.
  EXPECT_EQ(steps, 2 * 2 * ((batches * 5 + 3) / 4));
  EXPECT_GT(counter(record, "pushes_dropped"), 0);
}

TEST(Ssp, StalenessStaysWithinTheBound) {
  for (const int bound : {0, 1, 4}) {
    Job job = straggling_job(servers(2, "ssp") + cluster("virtual", 4) +
                             Settings{"strategy.staleness=" + std::to_string(bound)});
    const RunRecord record = run_job(job);
    ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
    // Missing are at most what the three others pushed meanwhile: they are at most `bound` ahead,
    // and it at most `bound` ahead of them.
    for (const NodeReport& node : record.nodes)
      EXPECT_LE(node.freshness.staleness_max, 3 * (2 * bound + 1)) << bound;
  }
}

// A worker that stays slow uses up any fixed bound. What it is behind is forgiven by the adaptive
// one, which therefore needs no more than what the others do meanwhile; and where all are as fast
// as each other it comes down to a barrier.
TEST(Waiting, NeitherWaitsForASlowWorkerNorLetsEqualOnesDrift) {
  const auto run_with = [](const std::string& consistency, double factor) {
    Job job = load_job("", logistic_task() + servers(2, consistency) + cluster("virtual", 4) +
                               Settings{"task.global_batch=16", "task.epochs=6",
                                        "cluster.cost_only=true", "strategy.staleness=3"});
    if (factor > 1) job.cluster.stragglers.push_back({.node = 2, .factor = factor});
    const RunRecord record = run_job(job);
    EXPECT_EQ(record.status, RunStatus::kDone) << record.error;
    EXPECT_EQ(counter(record, "stale_reads"), 0);
    return record;
  };
  const auto time_of = [](const RunRecord& record) { return record.nodes.front().total_s; };
  const double free_s = time_of(run_with("asp", 5));
  EXPECT_LT(time_of(run_with("waiting", 5)), 1.3 * free_s);
  EXPECT_GT(time_of(run_with("ssp", 5)), 2 * free_s);
  const auto staleness_of = [](const RunRecord& record) {
    return record.nodes.back().freshness.staleness_mean;
  };
  EXPECT_LT(staleness_of(run_with("waiting", 1)), 0.75 * staleness_of(run_with("asp", 1)));
}

TEST(Staleness, GrowsWithTheFreedomOfTheModel) {
  const auto staleness = [](const std::string& consistency, const Settings& more) {
    Job job = straggling_job(servers(1, consistency) + cluster("virtual", 4) + more);
    const RunRecord record = run_job(job);
    EXPECT_EQ(record.status, RunStatus::kDone) << record.error;
    return record.nodes.back().freshness.staleness_max;
  };
  EXPECT_EQ(staleness("bsp", {}), 0);
  EXPECT_EQ(staleness("backup", {}), 0);
  const double little = staleness("ssp", {"strategy.staleness=1"});
  EXPECT_GT(little, 0);
  EXPECT_GT(staleness("asp", {}), little);
}

TEST(Virtual, ReplaysExactly) {
  for (const char* consistency : {"asp", "ssp", "adaptive", "backup"}) {
    Job first = straggling_job(servers(2, consistency) + cluster("virtual", 4));
    Job second = straggling_job(servers(2, consistency) + cluster("virtual", 4));
    const RunRecord a = run_job(first), b = run_job(second);
    ASSERT_EQ(a.nodes.size(), b.nodes.size());
    for (size_t i = 0; i < a.nodes.size(); ++i) EXPECT_EQ(to_text(a.nodes[i]), to_text(b.nodes[i]));
  }
}

TEST(CostOnly, TakesTheSameTimeAndBytesAsTheRealThing) {
  for (const char* consistency : {"bsp", "ssp"}) {
    Job real = straggling_job(servers(2, consistency) + cluster("virtual", 4));
    Job costs = straggling_job(servers(2, consistency) + cluster("virtual", 4) +
                               Settings{"cluster.cost_only=true"});
    const RunRecord a = run_job(real), b = run_job(costs);
    ASSERT_EQ(b.status, RunStatus::kDone) << b.error;
    ASSERT_EQ(a.nodes.size(), b.nodes.size());
    for (size_t i = 0; i < a.nodes.size(); ++i) {
      EXPECT_DOUBLE_EQ(a.nodes[i].total_s, b.nodes[i].total_s);
      EXPECT_EQ(a.nodes[i].bytes_sent, b.nodes[i].bytes_sent);
    }
  }
}

TEST(StopAtTarget, EndsEveryModelEarly) {
  for (const char* consistency : {"bsp", "asp", "ssp", "adaptive", "backup"}) {
    Job job = straggling_job(servers(2, consistency) + cluster("virtual", 4) +
                             Settings{"task.target=0.8", "task.stop_at_target=true",
                                      "task.eval_every=0.1", "task.epochs=50"});
    const RunRecord record = run_job(job);
    ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
    EXPECT_LT(record.evaluations.back().epoch, 10) << consistency;
  }
}

TEST(Divergence, IsToldToEverybody) {
  for (const char* fabric : {"virtual", "process"})
    for (const char* consistency : {"bsp", "ssp"}) {
      const RunRecord record = run(Settings{"task.data.kind=synthetic-linear", "task.model=linear",
                                            "task.data.samples=2000", "task.epochs=50",
                                            "task.eval_every=100", "optimizer.lr=1e6"} +
                                   servers(2, consistency) + cluster(fabric, 3));
      EXPECT_EQ(record.status, RunStatus::kDiverged) << consistency << " " << record.error;
      EXPECT_EQ(record.exit_code, kExitDiverged);
    }
}

struct Refusal {
  Settings settings;
  std::string key, words;
};

TEST(Check, RefusesWhatContradictsItself) {
  const std::vector<Refusal> refusals = {
      {{"strategy.consistency=backup", "strategy.backup=4"}, "strategy.backup", "cluster.workers"},
      {{"strategy.consistency=backup", "task.partition=disjoint"},
       "strategy.consistency",
       "task.partition"},
      {{"strategy.consistency=backup", "strategy.pull_every=2"}, "strategy.pull_every", "backup"},
      {{"strategy.consistency=ssp", "task.deterministic=true"}, "strategy.consistency", "bsp"},
      {{"task.deterministic=true", "strategy.pull_every=2"}, "strategy.pull_every", "determin"},
      {{"strategy.prefetch=true"}, "strategy.prefetch", "bsp"},
      {{"strategy.consistency=ssp", "strategy.prefetch=true", "strategy.staleness=0"},
       "strategy.staleness",
       "prefetch"},
      {{"strategy.rate=staleness"}, "strategy.rate", "bsp"},
      {{"strategy.consistency=asp", "strategy.rate=dynamic"}, "strategy.consistency", "ssp"},
      {{"strategy.consistency=ssp", "strategy.rate=dynamic", "optimizer.kind=adam"},
       "strategy.rate",
       "adam"},
      {{"strategy.update_weight=0.5"}, "strategy.update_weight", "bsp"},
      {{"strategy.servers=2", "optimizer.clip_norm=1"}, "optimizer.clip_norm", "servers"},
      {{"strategy.servers=2", "strategy.replicas=2"}, "strategy.replicas", "servers"},
      {{"strategy.servers=0"}, "strategy.servers", "1 to 4096"},
      {{"strategy.servers=[1, 2]"}, "strategy.servers", "1 to 4096"},
  };
  for (const Refusal& refusal : refusals) {
    try {
      Job job = load_job("", logistic_task() +
                                 Settings{"strategy.kind=parameter_server", "cluster.workers=4"} +
                                 refusal.settings);
      resolve(job);
      ADD_FAILURE() << refusal.settings[0] << " is not refused";
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.key(), refusal.key);
      EXPECT_NE(std::string(error.what()).find(refusal.words), std::string::npos) << error.what();
    }
  }
  EXPECT_THROW(load_job("", {"strategy.kind=parameter_server", "strategy.staleness=-1"}),
               ConfigError);
}

TEST(RunRecord, ShowsTheCountersAndTheRoles) {
  Job job = load_job("", logistic_task() + servers(2, "ssp") + cluster("virtual", 3));
  const RunRecord record = run_job(job);
  const nlohmann::json json = to_json(record, job);
  EXPECT_GT(json["counters"]["pushes_applied"], 0);
  EXPECT_EQ(json["nodes"][4]["role"], "server");
  EXPECT_GT(json["staleness"]["max"], 0);
  EXPECT_TRUE(json["lost"].empty());
}

// On one host gradients and parameters stay where they are: nothing but requests travels, and the
// result is bitwise that of messages.
TEST(OneHost, SharesMemoryAndGivesTheSameAsMessages) {
  const Settings task = logistic_task() + stragglers() + servers(2, "bsp") +
                        Settings{"task.data.features=1000", "task.epochs=1"};
  Job here = load_job("", task + cluster("process", 3));
  Job there = load_job("", task + cluster("virtual", 3));
  const RunRecord shared = run_job(here), sent = run_job(there);
  ASSERT_EQ(shared.status, RunStatus::kDone) << shared.error;
  ASSERT_EQ(sent.status, RunStatus::kDone) << sent.error;
  EXPECT_EQ(shared.nodes.front().parameters_sha256, sent.nodes.front().parameters_sha256);
  for (size_t i = 0; i < shared.nodes.size(); ++i)
    EXPECT_LT(shared.nodes[i].bytes_sent, sent.nodes[i].bytes_sent / 2);
}

}  // namespace
}  // namespace tutti
