// Pipelines with their parameters on servers: what they compute, send and hold, and how they end.
#include <gtest/gtest.h>

#include "core/random.h"
#include "fabric/outcome.h"
#include "tests/support/faults.h"
#include "tests/support/parameters.h"

namespace tutti {
namespace {

using namespace testing_support;

Settings task() {
  return small_mlp("[16, 16, 16]") + Settings{"task.max_steps=6", "optimizer.kind=adam",
                                              "optimizer.lr=0.01", "cluster.workers=4"};
}

Settings on_fabric(const std::string& fabric) { return {"cluster.fabric=" + fabric}; }

Settings pipeline() { return {"strategy.kind=pipeline", "strategy.micro_batches=4"}; }

Settings served(int servers, const std::string& schedule = "1f1b") {
  return {"strategy.kind=pipeline_servers", "strategy.micro_batches=4",
          "strategy.servers=" + std::to_string(servers), "strategy.schedule=\"" + schedule + "\""};
}

// Each stage has one worker: its gradient is updated with as it is, wherever that is done.
TEST(PipelineServers, ComputeThePipelinesParametersBitByBit) {
  const std::vector<float> expected = parameters_after(task() + pipeline() + on_fabric("virtual"));
  for (const char* fabric : {"virtual", "process"}) {
    for (const int servers : {1, 3, 4})
      EXPECT_EQ(parameters_after(task() + served(servers) + on_fabric(fabric)), expected)
          << servers << " servers on " << fabric;
    for (const char* schedule : {"sequential", "gpipe"})
      EXPECT_EQ(parameters_after(task() + served(2, schedule) + on_fabric(fabric)), expected)
          << schedule << " on " << fabric;
  }
  const Settings two = {"cluster.workers=2", "strategy.stages=4"};
  EXPECT_EQ(parameters_after(task() + served(2, "interleaved") + two + on_fabric("process")),
            parameters_after(task() + pipeline() + two + on_fabric("process") +
                             Settings{"strategy.schedule=interleaved"}));
}

TEST(PipelineServers, MeasureWhatThePipelineMeasures) {
  const RunRecord alone = run(task() + pipeline() + on_fabric("virtual"));
  const RunRecord with = run(task() + served(2) + on_fabric("virtual"));
  ASSERT_EQ(with.status, RunStatus::kDone) << with.error;
  ASSERT_EQ(alone.nodes[0].evaluations.size(), with.nodes[0].evaluations.size());
  EXPECT_EQ(alone.nodes[0].evaluations.back().quality, with.nodes[0].evaluations.back().quality);
  EXPECT_EQ(alone.nodes[0].test_quality, with.nodes[0].test_quality);
  EXPECT_EQ(alone.nodes[0].parameters_sha256, with.nodes[0].parameters_sha256);
  for (const NodeReport& node : with.nodes) {
    EXPECT_EQ(node.steps, 6) << node.rank;
    EXPECT_EQ(node.role, node.rank < 4 ? "worker" : "server");
  }
}

TEST(PipelineServers, StopAtTheTargetTogether) {
  const Settings early = {"task.max_steps=40", "task.epochs=10", "task.target=0.3",
                          "task.eval_every=0.2", "task.stop_at_target=true"};
  const RunRecord record = run(task() + early + served(2) + on_fabric("virtual"));
  ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
  EXPECT_LT(record.nodes[0].steps, 40);
  for (const NodeReport& node : record.nodes) EXPECT_EQ(node.steps, record.nodes[0].steps);
}

// Of every node, in bytes and messages; copies of stages too.
TEST(PipelineServers, SendWhatThePlanSays) {
  for (const char* deterministic : {"false", "true"})
    for (const Settings& more :
         {Settings{}, Settings{"strategy.stages=2", "strategy.copies=[3, 1]"},
          Settings{"strategy.schedule=interleaved", "cluster.workers=2", "strategy.stages=4"}}) {
      Settings settings = task() + on_fabric("virtual") +
                          Settings{"strategy.kind=pipeline_servers",
                                   "strategy.servers=2",
                                   "task.global_batch=48",
                                   "task.eval_every=100",
                                   "task.lanes=12",
                                   "task.deterministic=" + std::string(deterministic),
                                   "cluster.cost_only=true"} +
                          more;
      if (deterministic == std::string("false")) settings.push_back("strategy.micro_batches=12");
      const auto record_of = [&](const char* steps) {
        const RunRecord record = run(settings + Settings{"task.max_steps=" + std::string(steps)});
        EXPECT_EQ(record.status, RunStatus::kDone) << record.error;
        return record;
      };
      const RunRecord two = record_of("2"), four = record_of("4");
      Job job = load_job("", settings);
      const Plan plan = resolve(job).plan;
      ASSERT_EQ(two.nodes.size(), plan.nodes.size());
      for (size_t rank = 0; rank < plan.nodes.size(); ++rank) {
        const NodeReport &before = two.nodes[rank], &after = four.nodes[rank];
        EXPECT_EQ(static_cast<double>(after.bytes_sent - before.bytes_sent),
                  2 * plan.nodes[rank].bytes_sent)
            << "rank " << rank << ", deterministic = " << deterministic;
        EXPECT_EQ(static_cast<double>(after.messages - before.messages),
                  2 * plan.nodes[rank].messages)
            << "rank " << rank << ", deterministic = " << deterministic;
      }
    }
}

TEST(PipelineServers, CostTheSameWithoutTheArithmeticAndOnBothFabrics) {
  const Settings settings = task() + served(2);
  const RunRecord full = run(settings + on_fabric("virtual"));
  const RunRecord cost = run(settings + on_fabric("virtual") + Settings{"cluster.cost_only=true"});
  const RunRecord real = run(settings + on_fabric("process"));
  ASSERT_EQ(cost.status, RunStatus::kDone) << cost.error;
  ASSERT_EQ(real.status, RunStatus::kDone) << real.error;
  for (size_t rank = 0; rank < 6; ++rank) {
    EXPECT_EQ(full.nodes[rank].total_s, cost.nodes[rank].total_s) << rank;
    EXPECT_EQ(full.nodes[rank].bytes_sent, real.nodes[rank].bytes_sent) << rank;
    EXPECT_EQ(full.nodes[rank].messages, real.nodes[rank].messages) << rank;
  }
}

// Stages have parameters, gradients and their sum; servers parameters, a gradient, adam's state.
TEST(PipelineServersPlan, LeavesTheStateOfTheOptimizerToTheServers) {
  const auto plan_of = [](const Settings& settings) {
    Job job = load_job("", settings);
    return resolve(job);
  };
  const Resolved with = plan_of(task() + served(2)), without = plan_of(task() + pipeline());
  EXPECT_EQ(with.plan.equivalence, without.plan.equivalence);
  const auto of_layers = [&](const NodePlan& node) {
    double bytes = 0;
    for (const Range layers : node.layers)
      bytes +=
          sizeof(float) * static_cast<double>(stage_of(with.architecture, layers).parameter_count);
    return bytes;
  };
  double on_servers = 0;
  for (size_t rank = 0; rank < with.plan.nodes.size(); ++rank) {
    const NodePlan& node = with.plan.nodes[rank];
    EXPECT_FALSE(node.may_be_lost);
    EXPECT_EQ(node.has_model, rank < 4);
    if (rank >= 4) {
      EXPECT_EQ(node.memory_bytes, 4 * of_layers(node)) << rank;
      on_servers += of_layers(node);
    } else if (rank > 0) {  // which gathers all in the end
      EXPECT_EQ(without.plan.nodes[rank].memory_bytes - node.memory_bytes, 2 * of_layers(node));
    }
  }
  EXPECT_EQ(on_servers, sizeof(float) * static_cast<double>(with.architecture.parameter_count));
}

TEST(PipelineServersSettings, ThatContradictEachOtherAreNamed) {
  const auto refused = [](const Settings& more) { return refusal(task() + served(2) + more); };
  EXPECT_EQ(refused({}), "");
  EXPECT_EQ(refused({"strategy.servers=5"}).find("strategy.servers: "), 0u);
  EXPECT_EQ(refused({"strategy.stages=\"auto\""}).find("strategy.stages: "), 0u);
  EXPECT_EQ(refused({"strategy.copies=\"auto\""}).find("strategy.copies: "), 0u);
  EXPECT_EQ(refused({"optimizer.clip_norm=1"}).find("optimizer.clip_norm: "), 0u);
  EXPECT_THROW(load_job("", task() + served(1, "asynchronous")), ConfigError);
}

TEST(PipelineServers, DivergenceEndsServersToo) {
  for (const char* fabric : {"virtual", "process"}) {
    const RunRecord record = run(task() + served(2) + on_fabric(fabric) +
                                 Settings{"optimizer.kind=sgd", "optimizer.lr=1e30"});
    EXPECT_EQ(record.status, RunStatus::kDiverged) << fabric << ": " << record.error;
    for (const NodeOutcome& outcome : record.outcomes)
      EXPECT_NE(outcome.kind, NodeOutcome::Kind::kDone) << fabric;
  }
}

Settings slow_cluster() {
  return {"task.max_steps=0",   "cluster.fabric=virtual",  "cluster.speed=\"10 MFLOP/s\"",
          "cluster.timeout=20", "cluster.step_overhead=0", "cluster.layer_overhead=0",
          "cluster.detect=0.05"};
}

TEST(PipelineServersFaults, EverySurvivorNamesTheLostStageOrServer) {
  for (const int64_t victim : {0, 2, 3, 4, 5}) {
    Job job = load_job("", task() + served(2) + slow_cluster());
    job.cluster.faults.push_back({.kind = FaultKind::kCrash, .at_s = 0.01, .nodes = {victim}});
    const RunRecord record = run_job(job);
    EXPECT_EQ(record.exit_code, kExitPeerLost) << victim;
    for (int64_t rank = 0; rank < 6; ++rank) {
      const NodeOutcome& outcome = record.outcomes[static_cast<size_t>(rank)];
      if (rank == victim) {
        EXPECT_EQ(outcome.kind, NodeOutcome::Kind::kLost);
        continue;
      }
      EXPECT_EQ(outcome.lost_peer, victim) << "rank " << rank << ": " << outcome.error;
    }
  }
}

TEST(PipelineServersFaults, RandomFaultsEndInAStatedOutcome) {
  expect_stated_outcomes(40, 0.05, 10, [](Random& random) {
    Settings settings = task() + served(1 + static_cast<int>(random.below(3))) + slow_cluster();
    if (random.below(2))
      settings = settings + Settings{"strategy.stages=3", "strategy.copies=[2, 1, 1]"};
    return load_job("", settings);
  });
}

}  // namespace
}  // namespace tutti
