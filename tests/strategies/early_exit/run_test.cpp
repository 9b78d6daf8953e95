// Early exits as a run: what they train, what they answer, what that costs, what is refused.
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "tests/support/parameters.h"

namespace tutti {
namespace {

using namespace testing_support;

// Layers 0, 3 and 6 are affine ones with relu and dropout behind them.
Settings mlp_task() {
  return {"task.data.kind=synthetic-classes",
          "task.data.samples=480",
          "task.data.features=16",
          "task.data.classes=4",
          "task.data.noise=1.5",
          "task.model.kind=mlp",
          "task.model.hidden=[12, 10]",
          "task.model.dropout=0.2",
          "task.global_batch=37",
          "task.epochs=3",
          "optimizer.kind=nesterov",
          "optimizer.lr=0.05",
          "cluster.timeout=60"};
}

Settings tiers(int workers, const std::string& fabric) {
  return {"strategy.kind=early_exit", "cluster.workers=" + std::to_string(workers),
          "cluster.fabric=" + fabric};
}

double figure(const RunRecord& record, const std::string& name) {
  const auto& figures = record.nodes.at(0).extra.figures;
  const auto found = figures.find(name);
  EXPECT_NE(found, figures.end()) << name;
  return found == figures.end() ? NAN : found->second;
}

// One batch at a time in one piece: the sums are those of one worker, bit by bit, and an exit of
// weight 0 changes nothing.
TEST(EarlyExit, WithTheLastExitAloneItIsSolo) {
  const Settings alone = {"strategy.kind=solo", "cluster.workers=1"};
  const Settings exact = {"strategy.bits=32"};
  const std::string expected = checksum(mlp_task() + alone);
  for (const char* fabric : {"process", "virtual"}) {
    EXPECT_EQ(checksum(mlp_task() + tiers(2, fabric) + exact +
                       Settings{"strategy.exit_weights=[0.0, 1.0]"}),
              expected)
        << fabric;
    EXPECT_EQ(checksum(mlp_task() + tiers(3, fabric) + exact +
                       Settings{"strategy.exit_weights=[0.0, 0.0, 1.0]"}),
              expected)
        << fabric;
  }
  EXPECT_NE(checksum(mlp_task() + tiers(2, "virtual") + exact), expected) << "exits train, too";
}

TEST(EarlyExit, ConvolutionsWithTheLastExitAloneAreSolo) {
  const Settings task = {"task.data=fashion-mnist", "task.data.limit=256",
                         "task.model.kind=lenet",   "task.model.channels=[6, 16]",
                         "task.model.hidden=[120]", "task.global_batch=60",
                         "task.max_steps=3",        "optimizer.kind=adam",
                         "optimizer.lr=0.001",      "cluster.timeout=60"};
  EXPECT_EQ(checksum(task + tiers(3, "process") +
                     Settings{"strategy.bits=32", "strategy.exit_weights=[0.0, 0.0, 1.0]"}),
            checksum(task + Settings{"strategy.kind=solo", "cluster.workers=1"}));
}

// A step of several devices sums the same terms in another order. Each of 37 terms of a component
// of the gradient is below 10 here, so the sum is off by at most 2 x 37 roundings of 10, times the
// rate; and the parameter, below 4, is rounded once more.
TEST(EarlyExit, DevicesShareABatch) {
  const Settings task = mlp_task() + Settings{"task.max_steps=1", "strategy.bits=32",
                                              "strategy.exit_weights=[1.0, 1.0]"};
  const std::vector<float> one = parameters_after(task + tiers(2, "virtual"));
  const std::vector<float> three =
      parameters_after(task + tiers(4, "virtual") + Settings{"strategy.devices=3"});
  const double u = std::ldexp(1.0, -24), bound = 0.05 * 2 * 37 * u * 10 + 4 * u;
  ASSERT_EQ(one.size(), three.size());
  for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], three[i], bound) << i;
}

TEST(EarlyExit, BothFabricsGiveTheSameBitsAndFigures) {
  for (const Settings& way :
       {tiers(2, "process"), tiers(3, "process"),
        tiers(4, "process") + Settings{"strategy.devices=2", "strategy.bits=2"}}) {
    const RunRecord real = run(mlp_task() + way);
    const RunRecord simulated = run(mlp_task() + way + Settings{"cluster.fabric=virtual"});
    ASSERT_EQ(real.status, RunStatus::kDone) << real.error;
    ASSERT_EQ(simulated.status, RunStatus::kDone) << simulated.error;
    EXPECT_EQ(real.nodes[0].parameters_sha256, simulated.nodes[0].parameters_sha256);
    EXPECT_EQ(real.nodes[0].extra.figures, simulated.nodes[0].extra.figures);
    EXPECT_EQ(real.nodes[0].test_quality, simulated.nodes[0].test_quality);
    for (size_t rank = 0; rank < real.nodes.size(); ++rank)
      EXPECT_EQ(real.nodes[rank].bytes_sent, simulated.nodes[rank].bytes_sent);
    for (size_t i = 0; i < real.evaluations.size(); ++i)
      EXPECT_EQ(real.evaluations[i].quality, simulated.evaluations[i].quality);
  }
}

// 12 values a bit each are 2 bytes, 10 are 2 as well; an answer is one.
TEST(EarlyExit, SendsWhatTheSharesSay) {
  const RunRecord two = run(mlp_task() + tiers(2, "virtual") +
                            Settings{"strategy.cuts=[3]", "strategy.thresholds=[0.5]"});
  ASSERT_EQ(two.status, RunStatus::kDone) << two.error;
  const double left = figure(two, "device_exit_share");
  EXPECT_GT(left, 0.1);
  EXPECT_LT(left, 0.95);
  EXPECT_NEAR(figure(two, "cloud_exit_share"), 1 - left, 1e-12);
  EXPECT_NEAR(figure(two, "exit_bytes_per_sample"), 1 + (1 - left) * 2, 1e-9);
  EXPECT_EQ(figure(two, "cloud_only_bytes_per_sample"), 16 * 4) << "floats, as they are stored";
  EXPECT_NEAR(figure(two, "bytes_saved_factor"), 64 / (1 + (1 - left) * 2), 1e-9);
  EXPECT_EQ(two.nodes[0].test_quality, figure(two, "exit_accuracy"));

  const RunRecord three = run(mlp_task() + tiers(3, "virtual") +
                              Settings{"strategy.bits=8", "strategy.thresholds=[0.5, 0.5]"});
  ASSERT_EQ(three.status, RunStatus::kDone) << three.error;
  const double device = figure(three, "device_exit_share"), edge = figure(three, "edge_exit_share");
  EXPECT_NEAR(figure(three, "exit_bytes_per_sample"),
              1 + (1 - device) * (12 + 1) + (1 - device - edge) * 10, 1e-9);
  const Extra::Table& table = three.nodes[0].extra.tables.at("exits");
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.rows[1][1], 0.5) << "threshold";
  EXPECT_EQ(table.rows[1][2], edge);
}

TEST(EarlyExit, ThresholdsOfZeroAndOneSendAllOrNone) {
  const RunRecord all =
      run(mlp_task() + tiers(2, "virtual") + Settings{"strategy.thresholds=[0.0]"});
  EXPECT_EQ(figure(all, "cloud_exit_share"), 1);
  EXPECT_EQ(figure(all, "exit_accuracy"), figure(all, "cloud_exit_accuracy_of_all"));
  const RunRecord none =
      run(mlp_task() + tiers(2, "virtual") + Settings{"strategy.thresholds=[1.0]"});
  EXPECT_EQ(figure(none, "device_exit_share"), 1);
  EXPECT_EQ(figure(none, "exit_bytes_per_sample"), 1);
  EXPECT_EQ(figure(none, "exit_accuracy"), figure(none, "device_exit_accuracy_of_all"));
}

// What is left out of the record is left out of the time: the same messages, the same clock.
TEST(EarlyExit, TrainingCostsTheSameWithoutTheArithmetic) {
  const Settings task = mlp_task() + tiers(3, "virtual");
  const RunRecord full = run(task), cost = run(task + Settings{"cluster.cost_only=true"});
  ASSERT_EQ(cost.status, RunStatus::kDone) << cost.error;
  for (size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(full.nodes[rank].total_s, cost.nodes[rank].total_s) << rank;
    EXPECT_EQ(full.nodes[rank].bytes_sent, cost.nodes[rank].bytes_sent) << rank;
  }
  EXPECT_EQ(full.nodes[0].role, "device");
  EXPECT_EQ(full.nodes[1].role, "edge");
  EXPECT_EQ(full.nodes[2].role, "cloud");
}

TEST(EarlyExit, DivergenceIsNamed) {
  const RunRecord record =
      run(mlp_task() + tiers(3, "virtual") + Settings{"optimizer.kind=sgd", "optimizer.lr=1e30"});
  EXPECT_EQ(record.status, RunStatus::kDiverged) << record.error;
}

TEST(EarlyExitSettings, ThatContradictEachOtherAreNamed) {
  const auto refused = [](const Settings& more, const char* named) {
    const std::string said = refusal(mlp_task() + tiers(2, "process") + more);
    EXPECT_NE(said.find(named), std::string::npos) << named << " is not in: " << said;
  };
  EXPECT_EQ(refusal(mlp_task() + tiers(2, "process")), "");
  refused({"cluster.workers=1"}, "set cluster.workers = 2 or 3");
  refused({"cluster.workers=4"}, "cluster.workers: ");
  refused({"strategy.devices=2"}, "set cluster.workers = 3 or 4");
  refused({"strategy.bits=3"}, "strategy.bits = 3 is not one of");
  refused({"strategy.exit_weights=[1.0]"}, "strategy.exit_weights has 1 entries");
  refused({"strategy.exit_weights=[1.0, 0.0]"}, "ends with 0");
  refused({"strategy.thresholds=[0.5, 0.5]"}, "strategy.thresholds has 2 entries");
  refused({"strategy.thresholds=[1.5]"}, "strategy.thresholds");
  refused({"strategy.cuts=[2]"}, "2 is no place to cut");
  refused({"strategy.cuts=[3, 6]"}, "strategy.cuts has 2 entries");
  refused({"task.deterministic=true"}, "task.deterministic: ");
  refused({"task.partition=disjoint"}, "task.partition: ");
  refused({"optimizer.clip_norm=1"}, "optimizer.clip_norm: ");
  refused({"task.data.validation=0"}, "strategy.thresholds: ");
  refused({"task.model=logistic"}, "at most 1");
  EXPECT_NE(refusal(Settings{"task.data.kind=synthetic-linear", "task.model.kind=mlp"} +
                    tiers(2, "process"))
                .find("predicts a number"),
            std::string::npos);
}

TEST(EarlyExitPlan, SaysWhatGoesWhereAndCutsWhereASampleIsFastest) {
  const auto explained = [](const Settings& more) {
    Job job = load_job("", mlp_task() + tiers(2, "virtual") + more);
    return resolve(job).plan.reasons;
  };
  const Settings wide = {"task.model.hidden=[64, 8]", "strategy.bits=32"};
  // Slow links: where few values pass. Fast links and a slow device: as early as possible.
  const auto narrow = explained(wide + Settings{"cluster.bandwidth=\"1 kB/s\""});
  EXPECT_NE(narrow[0].find("passes on 8 values"), std::string::npos) << narrow[0];
  const auto slow =
      explained(wide + Settings{"cluster.bandwidth=\"10 GB/s\"", "cluster.speed=\"1 MFLOP/s\"",
                                "cluster.speed_factors=[0.01, 1.0]"});
  EXPECT_NE(slow[0].find("passes on 64 values"), std::string::npos) << slow[0];
}

}  // namespace
}  // namespace tutti
