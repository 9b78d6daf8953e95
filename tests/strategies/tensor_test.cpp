// Layers split over nodes: the same model, wherever its parts are computed.
#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "core/random.h"
#include "fabric/outcome.h"
#include "tests/support/faults.h"
#include "tests/support/rounding.h"

namespace tutti {
namespace {

using namespace testing_support;

Settings mlp_task() {
  return small_mlp("[16, 12]") +
         Settings{"task.max_steps=6", "optimizer.kind=sgd", "optimizer.lr=0.05"};
}

Settings lenet_task() {
  return {"task.data=fashion-mnist", "task.data.limit=256",
          "task.model.kind=lenet",   "task.model.channels=[6, 16]",
          "task.model.hidden=[40]",  "task.global_batch=32",
          "task.max_steps=3",        "optimizer.lr=0.05",
          "cluster.timeout=60"};
}

Settings resnet_task() {
  return {"task.data=fashion-mnist",     "task.data.limit=64",  "task.model.kind=resnet20",
          "task.model.channels=[8, 16]", "task.model.blocks=1", "task.model.groups=4",
          "task.global_batch=16",        "task.max_steps=2",    "optimizer.lr=0.05",
          "cluster.timeout=60"};
}

Settings transformer_task(const TemporaryFolder& folder) {
  std::ofstream text(folder / "text");
  Random random(1, Stream::kTest);
  for (int i = 0; i < 1500; ++i) text << "abcde \n"[random.below(7)];
  return {"task.data.kind=tokens", "task.data.path=" + (folder / "text"),
          "task.data.context=12",  "task.model.kind=transformer",
          "task.model.width=16",   "task.model.depth=1",
          "task.model.heads=4",    "task.model.dropout=0.1",
          "task.global_batch=17",  "task.max_steps=4",
          "optimizer.lr=0.05",     "cluster.timeout=60"};
}

const Settings kSolo = {"strategy.kind=solo", "cluster.workers=1"};

Settings tensor(int shards, const std::string& fabric) {
  return {"strategy.kind=tensor", "cluster.workers=" + std::to_string(shards),
          "cluster.fabric=" + fabric};
}

TEST(Tensor, EqualsSoloUpToTheOrderOfAdditions) {
  const TemporaryFolder folder;
  for (const Settings& task : {mlp_task(), lenet_task(), resnet_task(), transformer_task(folder)}) {
    const RoundingBound bound(task, kSolo, 16 * 25);  // the longest sums are those of lenet's conv2
    bound.expect_close(parameters_after(task + tensor(2, "process")), "two shards");
    bound.expect_close(parameters_after(task + tensor(4, "virtual")), "four shards");
  }
}

TEST(Tensor, OfOneShardIsSoloBitByBit) {
  const TemporaryFolder folder;
  for (const Settings& task : {mlp_task(), transformer_task(folder)}) {
    EXPECT_EQ(checksum(task + tensor(1, "virtual")), checksum(task + kSolo));
    const Settings deterministic = task + Settings{"task.deterministic=true"};
    EXPECT_EQ(checksum(deterministic + tensor(1, "process")), checksum(deterministic + kSolo));
  }
}

// Additions have an order that does not depend on the fabric; of two shards there is only one.
TEST(Tensor, IsTheSameOnEveryFabricAndOfTwoShardsInEveryTopology) {
  const TemporaryFolder folder;
  const Settings task = transformer_task(folder);
  EXPECT_EQ(checksum(task + tensor(4, "process")), checksum(task + tensor(4, "virtual")));
  const std::string expected = checksum(task + tensor(2, "virtual"));
  for (const char* topology : {"ring", "tree", "all_to_all"})
    for (const char* fabric : {"process", "virtual"})
      EXPECT_EQ(checksum(task + tensor(2, fabric) +
                         Settings{"strategy.topology=" + std::string(topology)}),
                expected)
          << topology << " on " << fabric;
}

TEST(Tensor, CostsAreTheSameWithoutTheArithmetic) {
  const TemporaryFolder folder;
  for (const Settings& task : {mlp_task(), lenet_task(), transformer_task(folder)}) {
    const RunRecord full = run(task + tensor(2, "virtual"));
    const RunRecord cost = run(task + tensor(2, "virtual") + Settings{"cluster.cost_only=true"});
    const RunRecord real = run(task + tensor(2, "process"));
    ASSERT_EQ(cost.status, RunStatus::kDone) << cost.error;
    for (size_t rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(full.nodes[rank].total_s, cost.nodes[rank].total_s);
      EXPECT_EQ(full.nodes[rank].bytes_sent, cost.nodes[rank].bytes_sent);
      EXPECT_EQ(full.nodes[rank].bytes_sent, real.nodes[rank].bytes_sent);
      EXPECT_EQ(full.nodes[rank].messages, cost.nodes[rank].messages);
    }
  }
}

NodePlan predicted(const Settings& settings) {
  Job job = load_job("", settings);
  return resolve(job).plan.busiest();
}

// What a step sends is known before the run, by the byte.
TEST(Tensor, SendsWhatCheckSays) {
  for (const Settings& task : {mlp_task() + Settings{"task.global_batch=36"}, lenet_task()})
    for (const int shards : {2, 4}) {
      const Settings settings = task + tensor(shards, "virtual") + Settings{"task.eval_every=100"};
      const auto sent = [&](const char* steps) {
        const RunRecord record = run(settings + Settings{"task.max_steps=" + std::string(steps)});
        EXPECT_EQ(record.status, RunStatus::kDone) << record.error;
        uint64_t most = 0;
        for (const NodeReport& node : record.nodes)
          if (node.rank != 0) most = std::max(most, node.bytes_sent);
        return static_cast<double>(most);
      };
      EXPECT_EQ(sent("4") - sent("2"), 2 * predicted(settings).bytes_sent) << shards;
    }
}

TEST(Tensor, ALostShardIsNamedWithWhatWasSummed) {
  for (const int64_t victim : {0, 1, 3}) {
    Job job = load_job(
        "", mlp_task() + tensor(4, "virtual") +
                Settings{"task.max_steps=0", "cluster.step_overhead=0", "cluster.layer_overhead=0",
                         "cluster.speed=\"10 MFLOP/s\"", "cluster.detect=0.05"});
    job.cluster.faults.push_back({.at_s = 0.02, .nodes = {victim}});
    const RunRecord record = run_job(job);
    EXPECT_EQ(record.exit_code, kExitPeerLost) << record.error;
    for (int64_t rank = 0; rank < 4; ++rank) {
      if (rank == victim) continue;
      const NodeOutcome& outcome = record.outcomes[static_cast<size_t>(rank)];
      EXPECT_EQ(outcome.lost_peer, victim) << outcome.error;
      EXPECT_NE(outcome.error.find("shard " + std::to_string(rank) + " of stage 0 sums "),
                std::string::npos)
          << outcome.error;
      EXPECT_NE(outcome.error.find("of micro-batch 0"), std::string::npos) << outcome.error;
    }
  }
}

TEST(Tensor, DivergenceIsNamed) {
  const RunRecord record = run(mlp_task() + tensor(2, "virtual") + Settings{"optimizer.lr=1e30"});
  EXPECT_EQ(record.status, RunStatus::kDiverged) << record.error;
}

TEST(TensorSettings, ThatContradictEachOtherAreNamed) {
  const TemporaryFolder folder;
  const auto refused = [](const Settings& more) {
    return refusal(mlp_task() + tensor(4, "process") + more);
  };
  EXPECT_EQ(refused({}), "");
  EXPECT_TRUE(refused({"strategy.shards=2"}).starts_with("strategy.shards"));
  EXPECT_TRUE(refused({"task.deterministic=true"}).starts_with("task.deterministic"));
  EXPECT_TRUE(refused({"task.partition=disjoint"}).starts_with("task.partition"));
  EXPECT_TRUE(refused({"optimizer.clip_norm=1"}).starts_with("optimizer.clip_norm"));
  EXPECT_TRUE(refused({"optimizer.kind=lamb"}).starts_with("optimizer.kind"));
  EXPECT_TRUE(refused({"optimizer.kind=shampoo"}).starts_with("optimizer.kind"));
  EXPECT_NE(refused({"cluster.workers=17"}).find("no layers that could be split"),
            std::string::npos);
  EXPECT_TRUE(
      refusal(transformer_task(folder) + tensor(3, "process")).starts_with("task.model.heads"));
  EXPECT_NE(refusal({"task.data.kind=synthetic-ratings", "task.model=factorization",
                     "strategy.kind=tensor"})
                .find("use parameter_server"),
            std::string::npos);
}

}  // namespace
}  // namespace tutti
