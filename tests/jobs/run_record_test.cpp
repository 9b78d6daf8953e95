// The run record: what a node reports reaches the launcher unchanged, and totals are what the
// definitions say.
#include "jobs/run_record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/random.h"
#include "jobs/batch_losses.h"
#include "jobs/rate_to_try.h"
#include "jobs/run_folder.h"
#include "jobs/run_quality.h"
#include "tests/support/jobs.h"

namespace tutti {
namespace {

using nlohmann::json;

NodeReport example(int rank) {
  NodeReport report;
  report.rank = rank;
  report.total_s = 10 + rank;
  report.compute_s = 1.1;
  report.communicate_s = 2.2;
  report.aggregate_s = 0.3;
  report.wait_s = 1.0 / 3;
  report.cpu_s = 4;
  report.peak_memory_bytes = 1e9 * (1 + rank);
  report.bytes_sent = (uint64_t{1} << 40) + static_cast<uint64_t>(rank);
  report.messages = 7;
  report.steps = 100 - rank;
  report.samples = 2000;
  report.own_samples = 1000;
  report.losses = {2.5, NAN, 1};
  report.shares = {3 + rank, rank, 0};
  report.freshness.count = 1 + 2 * rank;
  report.freshness.staleness_mean = 0.5 + rank;
  report.freshness.staleness_max = 3 + rank;
  report.freshness.age_mean_s = 0.25;
  report.freshness.histogram = {2, 0, 1};
  report.reference_flops = 1e10 * (1 + rank);
  report.role = "worker";
  report.links = {{1 - rank, 1000}};
  report.traffic = {{2.0, 100}, {4.0, 300}};
  report.step_ends = {5, 7, 9};
  report.timeline = {{Phase::kCompute, 4, 6}, {Phase::kWait, 6, 7.5}, {Phase::kOther, 8, 9}};
  report.test_quality = 0.75;
  report.parameters_sha256 = std::string(64, 'a');
  if (rank == 0)
    report.evaluations = {
        {10, 1.5, 0.5, 640, 0.9, 0.6}, {20, 3.0, 1, 1280, 0.7, 0.9}, {30, 4, 2, 1920, NAN, 0.8}};
  return report;
}

TEST(NodeReport, SurvivesTheJourney) {
  for (const NodeReport& report : {example(0), example(3), NodeReport{}}) {
    const NodeReport read = node_report(to_text(report));
    EXPECT_EQ(to_text(read), to_text(report));
    EXPECT_EQ(read.rank, report.rank);
    EXPECT_EQ(read.wait_s, report.wait_s);
    EXPECT_EQ(read.bytes_sent, report.bytes_sent);
    EXPECT_EQ(read.parameters_sha256, report.parameters_sha256);
    ASSERT_EQ(read.evaluations.size(), report.evaluations.size());
    for (size_t i = 0; i < read.evaluations.size(); ++i) {
      EXPECT_EQ(read.evaluations[i].step, report.evaluations[i].step);
      EXPECT_EQ(read.evaluations[i].time_s, report.evaluations[i].time_s);
      EXPECT_EQ(read.evaluations[i].quality, report.evaluations[i].quality);
    }
  }
}

// A report may come from another machine, and a terminal obeys escapes.
TEST(NodeReport, TextsOfGuestsAreShownNotObeyed) {
  NodeReport report = example(0);
  report.role = "work\x1b[31mer";
  report.energy_method = "a\x07";
  report.extra.figures["x\x1b]0;title"] = 1;
  const NodeReport read = node_report(to_text(report));
  EXPECT_EQ(read.role, "work\\x1b[31mer");
  EXPECT_EQ(read.energy_method, "a\\x07");
  ASSERT_EQ(read.extra.figures.size(), 1u);
  EXPECT_EQ(read.extra.figures.begin()->first, "x\\x1b]0;title");
}

TEST(NodeReport, GarbageIsADataError) {
  for (const char* text :
       {"", "nonsense", "{}", "[]", "null", "{\"rank\": 1}", "{\"rank\": \"x\"}"})
    EXPECT_THROW(node_report(text), DataError) << text;
  const std::string whole = to_text(example(0));
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_THROW(node_report(whole.substr(0, size)), DataError) << size;
  // A flipped bit may leave a report that can be read; nothing else may come of it.
  Random random(5, Stream::kTest);
  size_t refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = whole;
    char& byte = damaged[random.below(damaged.size())];
    byte = static_cast<char>(byte ^ (1 << random.below(8)));
    try {
      node_report(damaged);
    } catch (const DataError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000u);
  for (const char* key : {"rank", "steps", "evaluations", "sha256"}) {
    json wrong = json::parse(whole);
    wrong[key] = json{{"a", 1}};
    EXPECT_THROW(node_report(wrong.dump()), DataError) << key;
    wrong.erase(key);
    EXPECT_THROW(node_report(wrong.dump()), DataError) << key;
  }
}

// Each step has the mean over the samples of all nodes. A node without a share has no loss of its
// own.
TEST(RunRecord, TheLossOfABatchIsTheMeanOverItsShares) {
  std::vector<NodeReport> nodes(3);
  for (int rank = 0; rank < 3; ++rank) nodes[static_cast<size_t>(rank)].rank = rank;
  nodes[0].losses = {1, NAN, 7};
  nodes[0].shares = {3, 0, 0};
  nodes[1].losses = {2, 4, 7};
  nodes[1].shares = {1, 5, 0};
  nodes[2].losses = {6};  // it was lost
  nodes[2].shares = {1};
  const std::vector<double> losses = batch_losses(nodes);
  ASSERT_EQ(losses.size(), 3u);
  EXPECT_DOUBLE_EQ(losses[0], (3 * 1 + 2 + 6) / 5.0);
  EXPECT_DOUBLE_EQ(losses[1], 4);
  EXPECT_TRUE(std::isnan(losses[2]));  // all nodes know the same loss

  const testing_support::TemporaryFolder folder;
  const std::string names = "step,time_s,loss,rate,samples\n";
  write_file(folder / "series.csv", names + "1,0.5,1,0.1,5\n2,1,nan,0.1,10\n3,1.5,7,0.1,15\n");
  write_batch_losses(folder.path(), nodes);
  EXPECT_EQ(read_file(folder / "series.csv"),
            names + "1,0.5,2.2,0.1,5\n2,1,4,0.1,10\n3,1.5,7,0.1,15\n");
}

TEST(RunRecord, CollapsedIsToHaveLostHalfOfWhatWasGained) {
  EXPECT_TRUE(has_collapsed(0.3, 0.6088, 0.104, true, 0.1));
  EXPECT_FALSE(has_collapsed(0.3, 0.9, 0.51, true, 0.1));  // 0.51 keeps just over half of the gain
  EXPECT_TRUE(has_collapsed(0.3, 0.9, 0.49, true, 0.1));
  EXPECT_FALSE(has_collapsed(0.1, 0.15, 0.1, true, 0.1));  // it never learnt anything
  EXPECT_TRUE(has_collapsed(0.3, 0.9, NAN, true, 0.1));
  EXPECT_FALSE(has_collapsed(NAN, NAN, NAN, true, 0.1));  // nothing was measured
  EXPECT_TRUE(has_collapsed(10, 1, 6, false, 0));
  EXPECT_FALSE(has_collapsed(10, 1, 5, false, 0));
  EXPECT_TRUE(has_collapsed(1, 1, 2, false, 0));  // the first measurement was the best
  EXPECT_FALSE(has_collapsed(1, 1, 1.4, false, 0));

  Job job = load_job("", {"task.target=0.85"});
  RunRecord record;
  record.status = RunStatus::kDone;
  record.metric = "accuracy";
  record.chance = 0.1;
  record.nodes = {example(0)};
  record.evaluations = record.nodes[0].evaluations;
  record.evaluations.back().quality = 0.12;
  judge_quality(record, job);
  EXPECT_EQ(record.status, RunStatus::kCollapsed);
  EXPECT_EQ(record.exit_code, 0);
  const std::string text = summary(record, job);
  for (const char* part : {"collapsed: accuracy on validation was 0.9 at its best and 0.12 at the",
                           "0.7500 on test at the end, 0.1200 on validation at the end, 0.9000",
                           "target    0.85 not reached"})  // what was reached is lost again
    EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_EQ(to_json(record, job)["quality"]["reached"], false);
  EXPECT_TRUE(to_json(record, job)["time"]["to_target_s"].is_null());
}

TEST(RunRecord, TotalsFollowTheDefinitions) {
  Job job = load_job("", {"task.target=0.85", "cluster.workers=2", "name=x"});
  RunRecord record;
  record.status = RunStatus::kDone;
  record.metric = "accuracy";
  record.startup_s = 0.25;
  record.data_s = 0.5;
  record.joules = 12;
  record.energy_method = "estimated";
  record.nodes = {example(0), example(1)};
  record.evaluations = record.nodes[0].evaluations;
  const json wall = to_json(record, job);
  EXPECT_EQ(wall["schema"], kRunSchema);
  EXPECT_EQ(wall["quality"]["best"], 0.9);
  EXPECT_EQ(wall["quality"]["last"], 0.8);
  EXPECT_EQ(wall["quality"]["final"], 0.75);
  EXPECT_EQ(wall["quality"]["reached"], true);
  EXPECT_EQ(wall["time"]["to_target_s"], 3.5);       // reading the data counts on a real fabric
  EXPECT_EQ(wall["time"]["total_s"], 11.5);          // of the slowest
  EXPECT_EQ(wall["time"]["cpu_s"], 8);               // of all
  EXPECT_DOUBLE_EQ(wall["time"]["compute_s"], 1.1);  // mean
  EXPECT_DOUBLE_EQ(wall["time"]["communicate_s"], 2.2);
  EXPECT_DOUBLE_EQ(wall["time"]["aggregate_s"], 0.3);
  EXPECT_DOUBLE_EQ(wall["time"]["wait_s"], 1.0 / 3);
  EXPECT_EQ(wall["time"]["startup_s"], 0.25);
  EXPECT_EQ(wall["energy"]["joules"], 12);
  EXPECT_DOUBLE_EQ(wall["utilisation"], 2 * 1.4 / 21);
  EXPECT_EQ(wall["steps"], 100);
  EXPECT_DOUBLE_EQ(wall["samples_per_s"], 2000.0 / 11.5);  // over the same time
  EXPECT_EQ(wall["nodes"][1]["samples"], 1000);            // its own
  EXPECT_EQ(wall["bytes_sent"], (uint64_t{1} << 41) + 1);
  EXPECT_EQ(wall["messages"], 14);
  EXPECT_EQ(wall["peak_memory_bytes"], 2e9);
  EXPECT_EQ(wall["staleness"]["mean"], (1 * 0.5 + 3 * 1.5) / 4);  // over updates, not nodes
  EXPECT_EQ(wall["staleness"]["max"], 4);
  EXPECT_EQ(wall["staleness"]["histogram"], json({4, 0, 2}));
  EXPECT_EQ(wall["age_s"]["mean"], 0.25);
  EXPECT_EQ(wall["steps_to_target"], 20);
  EXPECT_EQ(wall["samples_to_target"], 1280);
  EXPECT_DOUBLE_EQ(wall["time"]["relative_speed"], 1.5e10 / 20e9);
  // Computing takes 1.4 of 11.5 s. Reading data and the network take equally long on any processor.
  EXPECT_DOUBLE_EQ(wall["time"]["normalised"], (11.5 - 1.4 + 1.4 * 0.75) / 11.5);
  EXPECT_EQ(wall["quality"]["validation_final"], 0.8);
  EXPECT_EQ(wall["quality"]["test_final"], 0.75);
  EXPECT_EQ(wall["links"], json({{0, 1, 1000}, {1, 0, 1000}}));
  ASSERT_EQ(wall["evaluations"].size(), 3u);
  EXPECT_EQ(wall["evaluations"][0]["bytes"], 2 * 75);     // between the points 0 and 100
  EXPECT_EQ(wall["evaluations"][1]["bytes"], 2 * 200);    // and 100 and 300
  EXPECT_EQ(wall["evaluations"][1]["time_s"], 3.5);       // as time to target counts it
  EXPECT_TRUE(wall["evaluations"][2]["loss"].is_null());  // not a number
  ASSERT_EQ(wall["timeline"].size(), 2u);                 // from the first step's end to the
  EXPECT_EQ(wall["timeline"][0]["intervals"],             // second's
            json({{"compute", 0, 1}, {"wait", 1, 2}}));
  EXPECT_EQ(json::parse(json_text(wall)), wall);

  record.virtual_clock = true;
  const json simulated = to_json(record, job);
  EXPECT_EQ(simulated["time"]["to_target_s"], 3.0);
  EXPECT_EQ(simulated["time"]["total_s"], 11);
  EXPECT_EQ(simulated["obtained"], "simulated");
}

// A short run has taken some time and some energy.
TEST(RunRecord, SmallFiguresAreNotNought) {
  Job job = load_job("", {"task.target=0.85"});
  RunRecord record;
  record.status = RunStatus::kDone;
  record.metric = "accuracy";
  record.virtual_clock = true;
  record.joules = 0.229;
  record.energy_method = "simulated";
  record.nodes = {example(0)};
  NodeReport& node = record.nodes[0];
  node.total_s = 2.5e-3;
  node.compute_s = 1.25e-3;
  node.wait_s = node.aggregate_s = node.communicate_s = 42e-6;
  for (EvaluationRow& row : node.evaluations) row.time_s = 1.144e-3;
  record.evaluations = node.evaluations;
  const std::string text = summary(record, job);
  for (const char* part : {"2.5 ms virtual: compute 1.25 ms, aggregate 42 us, communicate 42 us, "
                           "wait 42 us",
                           "229 mJ (simulated)", "reached after 1.14 ms"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

// A target that nobody measured against was not missed either.
TEST(RunRecord, OnlyWhatWasMeasuredCanMissTheTarget) {
  Job job = load_job("", {"task.target=0.95"});
  RunRecord record;
  record.status = RunStatus::kDone;
  record.nodes = {example(0)};
  record.evaluations = record.nodes[0].evaluations;
  EXPECT_NE(summary(record, job).find("target    0.95 not reached"), std::string::npos);
  record.evaluations.clear();
  EXPECT_EQ(summary(record, job).find("target"), std::string::npos);
}

// A result within two standard deviations of guessing is noise, given the number of samples.
TEST(RunRecord, ARunThatLearntNothingSaysWhatToTry) {
  Job job = load_job("", {"optimizer.lr=0.25"});
  RunRecord record;
  record.status = RunStatus::kDone;
  record.metric = "accuracy";
  record.chance = 0.5;
  record.nodes = {example(0)};
  record.evaluations = record.nodes[0].evaluations;
  const double last = record.evaluations.back().quality;
  const auto says = [&](const std::string& text) {
    return summary(record, job).find(text) != std::string::npos;
  };
  record.validation_samples = 10000;
  EXPECT_FALSE(says("chance")) << last;
  record.evaluations.back().quality = 0.508;
  EXPECT_TRUE(
      says("chance    accuracy 0.5080 is no better than guessing (0.5000); try another "
           "optimizer.lr than 0.25, e.g. 0.025 or 2.5"));
  EXPECT_TRUE(to_json(record, job)["quality"]["remedy"].get<std::string>().starts_with("try an"));
  EXPECT_EQ(to_json(record, job)["quality"]["at_chance"], true);
  EXPECT_EQ(to_json(record, job)["status"], "done");
  record.unscaled = true;
  EXPECT_TRUE(says("try task.data.standardise = true; try another optimizer.lr"));
  record.validation_samples = 1000000;
  EXPECT_FALSE(says("chance"));
  EXPECT_FALSE(to_json(record, job)["quality"].contains("remedy"));
  record.validation_samples = 10000;
  record.higher_is_better = false;
  EXPECT_FALSE(says("chance"));
}

TEST(RunRecord, ARateThatIsUnusualForItsOptimizerIsNamed) {
  const auto tried = [](const std::vector<std::string>& settings) {
    return rate_to_try(load_job("", settings));
  };
  EXPECT_EQ(tried({"optimizer.kind=adam", "optimizer.lr=0.5"}),
            "optimizer.lr = 0.5 is large for adam: try 0.001");
  EXPECT_EQ(tried({"optimizer.lr=0.0005"}), "optimizer.lr = 0.0005 is small for sgd: try 0.1");
  const std::string federated = "strategy.kind=federated_averaging";
  EXPECT_EQ(tried({federated, "strategy.server={kind=\"yogi\", lr=1.0}"}),
            "strategy.server.lr = 1 is large for yogi: try 0.03");
  EXPECT_TRUE(tried({federated, "strategy.server=yogi"}).starts_with("try another optimizer.lr"));
  EXPECT_TRUE(tried({"strategy.kind=parameter_server"}).starts_with("try another optimizer.lr"));
}

TEST(RunRecord, ADivergedRunSaysWhatToTry) {
  RunRecord record;
  const auto judged = [&](const Settings& settings) {
    record.status = RunStatus::kDiverged;
    record.error = "the loss is nan";
    judge_quality(record, load_job("", settings));
    return record.error;
  };
  EXPECT_EQ(judged({"optimizer.lr=100"}),
            "the loss is nan; optimizer.lr = 100 is large for sgd: try 0.1");
  EXPECT_EQ(judged({"optimizer.lr=0.25"}),
            "the loss is nan; try a lower optimizer.lr than 0.25, e.g. 0.025");
  record.unscaled = true;
  EXPECT_EQ(judged({"optimizer.lr=0.25"}),
            "the loss is nan; try task.data.standardise = true; try a lower optimizer.lr than "
            "0.25, e.g. 0.025");
}

TEST(RunRecord, LowerIsBetterForErrors) {
  Job job = load_job("", {"task.target=0.65"});
  RunRecord record;
  record.metric = "mse";
  record.higher_is_better = false;
  record.nodes = {example(0)};
  record.evaluations = record.nodes[0].evaluations;
  const json result = to_json(record, job);
  EXPECT_EQ(result["quality"]["best"], 0.6);
  EXPECT_EQ(result["time"]["to_target_s"], 1.5);
  EXPECT_EQ(result["quality"]["reached"], true);
}

// What was not measured is null, and a run of which nobody reported is still a record.
TEST(RunRecord, NobodyReported) {
  Job job = load_job("", {});
  RunRecord record;
  record.status = RunStatus::kPeerLost;
  record.error = "rank 0 was lost";
  const json result = to_json(record, job);
  EXPECT_TRUE(result["quality"]["best"].is_null());
  EXPECT_TRUE(result["quality"]["final"].is_null());
  EXPECT_TRUE(result["quality"]["target"].is_null());
  EXPECT_TRUE(result["time"]["to_target_s"].is_null());
  EXPECT_EQ(result["time"]["total_s"], 0);
  EXPECT_EQ(result["error"], "rank 0 was lost");
  EXPECT_NE(summary(record, job).find("peer lost: rank 0 was lost"), std::string::npos);
  record.exit_code = 4;  // then the reason goes to standard error only
  EXPECT_NE(summary(record, job).find("status    peer lost\n"), std::string::npos);
  EXPECT_EQ(summary(record, job).find("rank 0"), std::string::npos);
}

TEST(RunRecord, AnyPathIsJson) {
  Job job = load_job("", {"name=a\xff"});
  RunRecord record;
  record.folder = "runs/\xfe";
  EXPECT_TRUE(json::parse(json_text(to_json(record, job)), nullptr, false).is_object());
}

}  // namespace
}  // namespace tutti
