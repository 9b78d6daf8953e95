// What federated averaging is for, in short: it learns from images that stay where they are, needs
// far fewer rounds than federated gradients, and suffers when clients see few labels.
#include <gtest/gtest.h>

#include "tests/support/jobs.h"

namespace tutti {
namespace {

using namespace testing_support;

RunRecord run_recipe(const std::string& recipe, const Settings& settings) {
  Job job = load_job(TUTTI_SOURCE "/recipes/" + recipe, settings);
  const std::atomic<bool> never{false};
  RunRecord record =
      launch(job, {.out = "", .keep_files = false, .progress = ProgressStyle::kNone}, never);
  EXPECT_EQ(record.status, RunStatus::kDone) << record.error;
  return record;
}

// The recipe that is compared with publications, on a tenth of the images and for a few rounds.
TEST(FederatedLearning, ShortNiidBenchLearnsAndPrefersIid) {
  const auto quality = [](const std::string& split) {
    return run_recipe("niid-bench.toml",
                      {"task.data.limit=3000", "task.max_steps=4", "strategy.local_epochs=5",
                       "optimizer.lr=0.02", "strategy.split=" + split})
        .nodes[0]
        .test_quality;
  };
  const double iid = quality("iid"), labels = quality("{kind=\"shards\", labels=2}");
  EXPECT_GT(iid, 0.6);      // 0.66 after so little
  EXPECT_GT(labels, 0.15);  // more than one class
  EXPECT_GT(iid, labels + 0.1);
}

// A step of the record is a round.
int64_t rounds_to_target(const Settings& settings) {
  const RunRecord record =
      run_recipe("federated-rounds.toml", Settings{"task.data.limit=12000"} + settings);
  for (const EvaluationRow& row : record.evaluations)
    if (row.quality >= 0.75) return row.step;
  ADD_FAILURE() << "0.75 not reached";
  return 0;
}

TEST(FederatedLearning, FedAvgNeedsFiveTimesFewerRoundsThanFedSgd) {
  const Settings target = {"task.target=0.75"};
  const int64_t fedavg = rounds_to_target(target);
  int64_t fedsgd = 1'000'000;
  for (const char* rate : {"0.05", "0.1"})
    fedsgd =
        std::min(fedsgd, rounds_to_target(target + Settings{"strategy.local_epochs=1",
                                                            "strategy.client_batch=1000000",
                                                            "optimizer.lr=" + std::string(rate)}));
  EXPECT_GE(fedsgd, 5 * fedavg);
}

TEST(FederatedLearning, TenThousandClientsAreRecords) {
  const RunRecord record =
      run_recipe("federated-10000.toml", {"task.max_steps=20", "cluster.workers=2"});
  EXPECT_EQ(record.nodes.back().counters.at("client_updates"), 20 * 100);
  EXPECT_EQ(record.nodes.back().extra.figures.at("clients"), 10000);
  EXPECT_LE(record.nodes.back().extra.tables.at("labels_of_clients").rows.size(), 100u);
  EXPECT_GT(record.nodes[0].test_quality, 0.5);
}

}  // namespace
}  // namespace tutti
