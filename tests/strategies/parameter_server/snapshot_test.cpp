// Runs that go on from the snapshots of others.
#include "strategies/parameter_server/snapshot.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "tests/strategies/parameter_server/runs.h"

namespace tutti {
namespace {

using namespace testing_support;
namespace fs = std::filesystem;
namespace ps = parameter_server;

Settings snapshot_task(const std::string& consistency, const std::string& fabric = "virtual") {
  return logistic_task() + servers(2, consistency) + cluster(fabric, 3) +
         Settings{"task.epochs=3", "cluster.timeout=20", "strategy.snapshot_every=5"};
}

// Loses the second server at this time.
RunRecord interrupted_run(const Settings& settings, double at_s, const std::string& out) {
  Job job = load_job("", settings);
  job.cluster.faults.push_back({.at_s = at_s, .nodes = {4}});
  const std::atomic<bool> never{false};
  return launch(job, {.out = out, .keep_files = true, .progress = ProgressStyle::kNone}, never);
}

void damage(const std::string& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(fs::file_size(path)) - 20);
  file.put('\x5a');
}

std::vector<std::string> files_of(const std::string& folder, int shard) {
  std::vector<std::string> files;
  for (const auto& file : fs::directory_iterator(folder + "/snapshots"))
    if (file.path().filename().string().starts_with("shard-" + std::to_string(shard) + "-"))
      files.push_back(file.path().string());
  std::sort(files.begin(), files.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  return files;
}

// Returns why a run with these settings does not start; empty when it does.
std::string why_refused(const Settings& settings) {
  try {
    const RunRecord record = run(settings);
    return record.status == RunStatus::kDone ? "" : record.error;
  } catch (const DataError& error) {
    return error.what();
  }
}

// With every kind of state: none, a velocity, two moments and the number of steps.
TEST(Snapshots, GoOnToTheSameResultUnderBsp) {
  for (const std::string optimizer : {"sgd", "momentum", "adam"}) {
    TemporaryFolder folder;
    const Settings settings =
        snapshot_task("bsp") + Settings{"task.deterministic=true", "optimizer.kind=" + optimizer};
    const RunRecord whole = run(settings);
    ASSERT_EQ(whole.status, RunStatus::kDone) << whole.error;
    const RunRecord lost =
        interrupted_run(settings, whole.nodes.front().total_s * 0.7, folder / "lost");
    EXPECT_EQ(lost.exit_code, kExitPeerLost);
    EXPECT_NE(lost.error.find("strategy.resume=" + (folder / "lost")), std::string::npos)
        << lost.error;
    EXPECT_GT(counter(lost, "updates_lost"), 0);
    const Settings resumed = settings + Settings{"strategy.resume=" + (folder / "lost")};
    EXPECT_EQ(checksum(resumed), whole.nodes.front().parameters_sha256) << optimizer;
    const RunRecord again = run(resumed);
    EXPECT_GE(counter(again, "resumed_at_update"), 15);
    EXPECT_LT(again.nodes.front().steps, whole.nodes.front().steps);
    // A damaged file is passed over, and the one before is used.
    ASSERT_EQ(files_of(folder / "lost", 0).size(), 2u);
    damage(files_of(folder / "lost", 0).back());
    const RunRecord older = run(resumed);
    EXPECT_EQ(older.nodes.front().parameters_sha256, whole.nodes.front().parameters_sha256);
    EXPECT_EQ(counter(older, "resumed_at_update"), counter(again, "resumed_at_update") - 5);
    // Or none.
    fs::resize_file(files_of(folder / "lost", 1).front(), 100);
    const std::string error = why_refused(resumed);
    EXPECT_NE(error.find("checksum"), std::string::npos) << error;
    EXPECT_NE(error.find("cut off"), std::string::npos) << error;
  }
}

TEST(Snapshots, LearnFromEverySampleInEveryModel) {
  for (const std::string consistency : {"asp", "ssp", "adaptive", "backup"}) {
    TemporaryFolder folder;
    const Settings settings = snapshot_task(consistency);
    const RunRecord whole = run(settings);
    const RunRecord lost =
        interrupted_run(settings, whole.nodes.front().total_s * 0.7, folder / "lost");
    EXPECT_EQ(lost.exit_code, kExitPeerLost) << lost.error;
    const RunRecord resumed = run(settings + Settings{"strategy.resume=" + (folder / "lost")});
    ASSERT_EQ(resumed.status, RunStatus::kDone) << consistency << ": " << resumed.error;
    EXPECT_GT(counter(resumed, "resumed_at_update"), 0);
    const EvaluationRow& last = resumed.evaluations.back();
    EXPECT_EQ(last.samples, whole.evaluations.back().samples) << consistency;
    EXPECT_NEAR(last.epoch, 3, 1e-9) << consistency;
  }
}

TEST(Snapshots, OfProcessesGoOnToo) {
  TemporaryFolder folder;
  const Settings settings = snapshot_task("bsp", "process") + Settings{"task.deterministic=true"};
  const RunRecord whole = run(settings, folder / "whole");
  ASSERT_EQ(whole.status, RunStatus::kDone) << whole.error;
  EXPECT_EQ(checksum(settings + Settings{"strategy.resume=" + (folder / "whole")}),
            whole.nodes.front().parameters_sha256);
}

TEST(Snapshots, OfAnotherJobAreRefused) {
  TemporaryFolder folder;
  ASSERT_EQ(run(snapshot_task("bsp"), folder / "first").status, RunStatus::kDone);
  const Settings resume = {"strategy.resume=" + (folder / "first")};
  for (const std::string change :
       {"task.data.features=8", "optimizer.kind=adam", "strategy.servers=3", "cluster.workers=2"}) {
    const std::string error = why_refused(snapshot_task("bsp") + resume + Settings{change});
    EXPECT_NE(error.find("snapshot"), std::string::npos) << change << ": " << error;
  }
  const std::string none =
      why_refused(snapshot_task("bsp") + Settings{"strategy.resume=/nonexistent"});
  EXPECT_NE(none.find("/nonexistent"), std::string::npos) << none;
}

// The error names settings and data that would change the result, with their old and new values.
TEST(Snapshots, OfOtherSettingsAreRefusedByName) {
  TemporaryFolder folder;
  ASSERT_EQ(run(snapshot_task("asp"), folder / "first").status, RunStatus::kDone);
  const Settings resume = {"strategy.resume=" + (folder / "first")};
  for (const auto& [change, named] : std::vector<std::pair<std::string, std::string>>{
           {"task.seed=7", "task.seed 1 -> 7"},
           {"task.seed=7", "samples of the data "},
           {"optimizer.lr=0.2", "optimizer.lr 0.1 -> 0.2"},
           {"task.global_batch=36", "task.global_batch 37 -> 36"},
           {"task.data.noise=0.2", "task.data.noise 0.1 -> 0.2"},
           {"task.data.validation=0.2", "split of the data "},
           {"optimizer.schedule=cosine", "optimizer.schedule constant -> cosine"},
           {"strategy.consistency=ssp", "strategy.consistency asp -> ssp"}}) {
    const std::string error = why_refused(snapshot_task("asp") + resume + Settings{change});
    EXPECT_NE(error.find(named), std::string::npos) << change << ": " << error;
    EXPECT_NE(error.find("job.toml"), std::string::npos) << error;
  }
  // The length of the run and the frequency of evaluations may change.
  EXPECT_EQ(why_refused(snapshot_task("asp") + resume + Settings{"task.epochs=4"}), "");
  EXPECT_EQ(why_refused(snapshot_task("asp") + resume + Settings{"task.eval_every=0.5"}), "");
}

// The record of a resumed run has the steps and samples of both runs, but the speed of its own.
TEST(Snapshots, TheRecordTellsWhatEachRunDid) {
  for (const std::string consistency : {"bsp", "asp"}) {
    TemporaryFolder folder;
    const Settings settings = snapshot_task(consistency);
    Job job = load_job("", settings);
    const RunRecord whole = run(settings);
    const nlohmann::json expected = to_json(whole, job);
    EXPECT_FALSE(expected.contains("resumed"));
    interrupted_run(settings, whole.nodes.front().total_s * 0.7, folder / "lost");
    const RunRecord again =
        run(settings + Settings{"strategy.resume=" + (folder / "lost")}, folder / "again");
    const nlohmann::json record = to_json(again, job);
    ASSERT_TRUE(record.contains("resumed"));
    const auto before = record["resumed"]["samples"].get<double>();
    EXPECT_GT(before, 0.3 * expected["samples"].get<double>());
    // The resumed run is as fast as the undisturbed one, not as if it had done all the work itself.
    EXPECT_NEAR(record["samples_per_s"].get<double>() / expected["samples_per_s"].get<double>(), 1,
                0.25);
    EXPECT_NE(summary(again, job).find("resumed   at step "), std::string::npos);
    if (consistency != "bsp") continue;
    EXPECT_EQ(record["samples"], expected["samples"]);
    EXPECT_EQ(record["steps"], expected["steps"]);
    EXPECT_EQ(record["resumed"]["steps"], counter(again, "resumed_at_update"));
    std::ifstream series(folder / "again/series.csv");
    std::string line;
    std::getline(series, line);
    std::getline(series, line);
    EXPECT_EQ(std::stoll(line), record["resumed"]["steps"].get<int64_t>() + 1);
  }
}

// Snapshots of the earlier version do not hold the settings of their run.
TEST(Snapshots, OfAnEarlierVersionAreRefusedWithWhatToDo) {
  TemporaryFolder folder;
  ASSERT_EQ(run(snapshot_task("bsp"), folder / "first").status, RunStatus::kDone);
  for (const std::string& path : files_of(folder / "first", 0))
    std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).write("TPSSNAP1", 8);
  const std::string error =
      why_refused(snapshot_task("bsp") + Settings{"strategy.resume=" + (folder / "first")});
  EXPECT_NE(error.find("earlier version of tutti"), std::string::npos) << error;
  EXPECT_NE(error.find("begin anew"), std::string::npos) << error;
}

TEST(Snapshots, OptimizersGoOnAsIfTheyHadNotStopped) {
  for (const OptimizerEntry& entry : optimizer_catalog()) {
    OptimizerConfig config(entry.name);
    config.weight_decay = 0.01;
    config.clip_norm = 1;
    const auto first = make_optimizer(config, 20), second = make_optimizer(config, 20);
    std::vector<float> x(20, 1), g(20);
    const auto step = [&](Optimizer& optimizer, std::vector<float>& values, int number) {
      for (size_t i = 0; i < g.size(); ++i)
        g[i] = static_cast<float>(i + 1) * 0.1f + static_cast<float>(number);
      optimizer.step(values, g, 0.1);
    };
    for (int i = 0; i < 5; ++i) step(*first, x, i);
    std::vector<float> y = x;
    for (size_t i = 0; i < first->state().size(); ++i)
      std::copy(first->state()[i].begin(), first->state()[i].end(), second->state()[i].begin());
    second->resume(first->steps());
    for (int i = 5; i < 8; ++i) {
      step(*first, x, i);
      step(*second, y, i);
    }
    EXPECT_EQ(x, y) << entry.name;
  }
}

}  // namespace
}  // namespace tutti
