// Predictions beside jobs, and the history of what became of them: read again as they were written,
// held against runs, and whatever else lies in their place is told and costs nothing.
#include "jobs/prediction.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <filesystem>

#include "core/described_json.h"
#include "core/error.h"
#include "core/shallow_json.h"
#include "jobs/job.h"
#include "jobs/prediction_history.h"
#include "jobs/run_folder.h"
#include "tests/support/jobs.h"

namespace tutti {
namespace {

using namespace testing_support;
using nlohmann::json;
namespace fs = std::filesystem;

class Predictions : public testing::Test {
 protected:
  static Job job(const Settings& more = {}) {
    return load_job("", Settings{"cluster.fabric=virtual", "cluster.workers=2",
                                 "cluster.nodes_per_host=2", "task.target=0.5"} +
                            more);
  }
  static Prediction prediction() {
    Prediction made = prediction_for(job(), "here");
    made.task = "the task";
    made.strategy = "ring";
    made.time_s = 40;
    made.error = 0.1;
    made.error_of_simulation = 0.05;
    return made;
  }
  static PredictionOutcome outcome(double took_s) {
    const Prediction made = prediction();
    return *outcome_of(made, held_against(made, took_s, false), false);
  }
  std::vector<PredictionOutcome> read() {
    return read_prediction_history(
        history_, [this](const std::string& what) { note(what); }, stop_);
  }
  void add(double took_s) {
    add_to_prediction_history(
        history_, outcome(took_s), [this](const std::string& what) { note(what); }, stop_);
  }
  void note(const std::string& what) { notes_ += what + "\n"; }

  TemporaryFolder folder_;
  std::string history_ = folder_ / "cache/predictions.jsonl";
  std::string notes_;
  std::atomic<bool> stop_{false};
};

TEST_F(Predictions, LieBesideTheirJobs) {
  EXPECT_EQ(prediction_file_of("jobs/best.toml"), "jobs/best.prediction.json");
  EXPECT_EQ(prediction_file_of("best"), "best.prediction.json");
  EXPECT_FALSE(read_prediction(folder_ / "none.prediction.json"));
  const std::string path = folder_ / "best.prediction.json";
  write_file(path, json_of(prediction()).dump());
  const std::optional<Prediction> back = read_prediction(path);
  ASSERT_TRUE(back);
  EXPECT_EQ(json_of(*back), json_of(prediction()));
}

TEST_F(Predictions, AreOfOneJobOnOneCluster) {
  const Prediction made = prediction();
  EXPECT_EQ(why_not_of(made, job()), "");
  EXPECT_EQ(why_not_of(made, job({"task.seed=7", "name=other", "footprint.price=3"})), "");
  for (const char* change : {"task.epochs=7", "task.target=0.6", "optimizer.lr=0.3",
                             "task.eval_every=0.5", "strategy={ kind = \"solo\" }"})
    EXPECT_EQ(why_not_of(made, job({change})), "the job has other settings") << change;
  EXPECT_EQ(why_not_of(made, job({"cluster.workers=4"})), "the job has other settings");
  for (const char* change : {"cluster.bandwidth=\"1 MB/s\"", "cluster.nodes_per_host=1"})
    EXPECT_EQ(why_not_of(made, job({change})), "the cluster is another one") << change;
}

// A real run has no declared speeds: it has as many processes on as many machines.
TEST_F(Predictions, HoldForRealRunsOnAsManyMachines) {
  const auto real = [](const Settings& more) {
    return load_job("", Settings{"cluster.workers=2", "task.target=0.5"} + more);
  };
  EXPECT_EQ(why_not_of(prediction(), real({})), "");
  EXPECT_EQ(why_not_of(prediction(), real({"cluster.threads=2"})), "it is of 1 thread a worker");
  EXPECT_EQ(why_not_of(prediction(), real({"cluster.remote=1"})), "it is of workers on 1 machine");
  Prediction apart = prediction_for(job({"cluster.nodes_per_host=1"}), "rack");
  apart.time_s = 1;
  EXPECT_EQ(why_not_of(apart, real({"cluster.remote=1"})), "");
  EXPECT_EQ(why_not_of(apart, real({})), "it is of workers on 2 machines");
}

TEST_F(Predictions, AreHeldAgainstRuns) {
  const auto said = [](std::optional<double> took_s, bool simulated) {
    return in_words(held_against(prediction(), took_s, simulated), simulated);
  };
  EXPECT_EQ(said(42, false), "40 s +- 4 s, took 42 s (measured): 5 % more, within the error");
  EXPECT_EQ(said(30, false), "40 s +- 4 s, took 30 s (measured): 25 % less, outside the error");
  EXPECT_EQ(said(44, true), "40 s +- 2 s, took 44 s (simulated): 10 % more, outside the error");
  EXPECT_EQ(said(40, true), "40 s +- 2 s, took 40 s (simulated): as predicted, within the error");
  EXPECT_EQ(said({}, true), "40 s +- 2 s, but the target was missed");
  EXPECT_FALSE(outcome_of(prediction(), held_against(prediction(), {}, false), false));
}

// As the advice tells them: a run that is as many times faster as another one is slower is as
// likely.
TEST_F(Predictions, TellBothEndsOfWideIntervals) {
  Prediction wide = prediction();
  wide.error = 1;
  const auto said = [&](std::optional<double> took_s) {
    return in_words(held_against(wide, took_s, false), false);
  };
  EXPECT_EQ(said(79), "40 s, 20 s to 80 s, took 79 s (measured): 98 % more, within the error");
  EXPECT_EQ(said(19), "40 s, 20 s to 80 s, took 19 s (measured): 52 % less, outside the error");
  EXPECT_EQ(said({}), "40 s, 20 s to 80 s, but the target was missed");
}

// Each is refused in words that name the file and a remedy.
TEST_F(Predictions, ThatAreNoneAreRefused) {
  const std::string path = folder_ / "best.prediction.json";
  json whole = json_of(prediction());
  std::vector<std::string> hostile = {"",
                                      "{",
                                      "[]",
                                      "null",
                                      "\xff\xfe\x00",
                                      "{\"schema\": 1}",
                                      std::string(100000, '['),
                                      std::string(2 << 20, ' '),
                                      R"({"schema": 99})",
                                      R"({"schema": "1"})"};
  for (const char* key : {"time_s", "error", "error_of_simulation"})
    for (const json& value :
         {json(-1), json(nullptr), json("much"), json(INFINITY), json::array()}) {
      json changed = whole;
      changed[key] = value;
      hostile.push_back(changed.dump());
    }
  for (const char* key : {"task", "job", "cluster", "workers"}) {
    json changed = whole;
    changed.erase(key);
    hostile.push_back(changed.dump());
  }
  for (const std::string& text : hostile) {
    write_file(path, text);
    try {
      read_prediction(path);
      ADD_FAILURE() << text.substr(0, 200);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("; "), std::string::npos) << error.what();
    }
  }
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_THROW(read_prediction(path), DataError);
  fs::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THROW(read_prediction(path), DataError) << "nobody waits for a pipe";
}

TEST_F(Predictions, LeaveAHistory) {
  EXPECT_TRUE(read().empty());
  for (const double took_s : {41, 42, 43}) add(took_s);
  const std::vector<PredictionOutcome> kept = read();
  ASSERT_EQ(kept.size(), 3u);
  EXPECT_EQ(kept[2].took_s, 43);
  EXPECT_EQ(kept[2].predicted_s, 40);
  EXPECT_EQ(kept[2].obtained, Obtained::kMeasured);
  EXPECT_EQ(kept[2].cluster_name, "here");
  EXPECT_EQ(notes_, "");
}

// Somebody was killed in the middle of a line, and somebody wrote what is none.
TEST_F(Predictions, IgnoreDamagedLinesOfTheirHistory) {
  add(41);
  json wrong = json::parse(read_file(history_));
  std::string text = read_file(history_) + "garbage\n\n" + std::string(70000, '[') + "\n";
  for (const auto& [key, value] : {std::pair<const char*, json>{"took_s", -1},
                                   {"took_s", 0},
                                   {"took_s", 1e308},
                                   {"took_s", 1e-5},
                                   {"predicted_s", 1e-308},
                                   {"predicted_s", nullptr},
                                   {"obtained", "guessed"}}) {
    json changed = wrong;
    changed[key] = value;
    text += changed.dump() + "\n";
  }
  write_file(history_, text + "{\"half\": ");
  add(42);
  const std::vector<PredictionOutcome> kept = read();
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[1].took_s, 42);
  EXPECT_NE(notes_.find("10 damaged lines are ignored"), std::string::npos) << notes_;
}

TEST_F(Predictions, KeepTheNewestOfTheirHistory) {
  fs::create_directories(fs::path(history_).parent_path());
  std::string text;
  const std::string line = json_of(outcome(41)).dump() + "\n";
  while (text.size() < (5u << 20)) text += line;
  write_file(history_, text);
  add(99);
  EXPECT_LT(fs::file_size(history_), 1u << 20);
  const std::vector<PredictionOutcome> kept = read();
  ASSERT_GT(kept.size(), 100u);
  EXPECT_EQ(kept.back().took_s, 99);
  EXPECT_EQ(notes_, "");
}

TEST_F(Predictions, AreAddedByManyAtOnce) {
  constexpr int kWriters = 4, kLines = 100;
  for (int writer = 0; writer < kWriters; ++writer)
    if (fork() == 0) {
      for (int i = 0; i < kLines; ++i) add(1 + writer);
      _exit(notes_.empty() ? 0 : 1);
    }
  for (int writer = 0; writer < kWriters; ++writer) {
    int status = 1;
    wait(&status);
    EXPECT_EQ(status, 0);
  }
  std::vector<int> of(kWriters + 1);
  for (const PredictionOutcome& one : read()) ++of.at(static_cast<size_t>(one.took_s));
  for (int writer = 1; writer <= kWriters; ++writer)
    EXPECT_EQ(of[static_cast<size_t>(writer)], kLines);
  EXPECT_EQ(notes_, "");
}

// A lock that somebody holds for good costs two seconds, and nothing once the program is to stop.
TEST_F(Predictions, DoNotWaitForGood) {
  add(41);
  const int held = open(history_.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(held, LOCK_EX), 0);
  add(42);
  EXPECT_NE(notes_.find("is not kept"), std::string::npos) << notes_;
  EXPECT_NE(notes_.find("another program keeps it locked"), std::string::npos) << notes_;
  stop_ = true;
  EXPECT_TRUE(read().empty());
  EXPECT_NE(notes_.find("cannot be read: another program"), std::string::npos) << notes_;
  close(held);
  EXPECT_EQ(read().size(), 1u);
}

TEST_F(Predictions, SayWhenNothingCanBeKept) {
  fs::create_directories(history_);  // a folder where the file should be
  add(41);
  EXPECT_NE(notes_.find("is not kept"), std::string::npos) << notes_;
  EXPECT_TRUE(read().empty());
  fs::remove(history_);
  ASSERT_EQ(mkfifo(history_.c_str(), 0600), 0);
  add(41);
  EXPECT_TRUE(read().empty()) << "nobody waits for a pipe";
}

}  // namespace
}  // namespace tutti
