// `tutti advise` as its users meet it: what it writes, keeps and says when it is interrupted.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "fabric/outcome.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;

class AdviseCommand : public testing::Test {
 protected:
  AdviseCommand() {
    write_text(folder_ / "job.toml", small_job());
    write_text(folder_ / "cluster.toml",
               "[cluster]\nfabric = \"virtual\"\nworkers = 4\nspeed = \"10 MFLOP/s\"\n");
  }
  Arguments command(const Arguments& more) const {
    Arguments all = {"advise",  "job.toml",         "--cluster", "cluster.toml",
                     "--quick", "--declared-speed", "--set",     "task.target=0.5"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  SubprocessOptions options() const {
    return {.folder = folder_.path(), .environment = {"XDG_CACHE_HOME=" + folder_.path() + "/c"}};
  }
  Ended ask(const Arguments& more) const { return run_tutti(command(more), options(), kLate_s); }
  static bool says(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
  TemporaryFolder folder_;
};

TEST_F(AdviseCommand, WritesTheJobToRun) {
  for (const char* option : {"--write", "--out"}) {
    const Ended ended = ask({"--strategies", "solo,ring", option, "best.toml"});
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_TRUE(says(ended.out, "best.toml is the job to run")) << ended.out;
    // The sentence is the last line.
    const size_t last = ended.out.rfind('\n', ended.out.size() - 2);
    EXPECT_EQ(ended.out.substr(last + 1, 4), "Use ") << ended.out;
    const Ended trained =
        run_tutti({"train", "best.toml", "--out", "run", "--json"}, options(), kLate_s);
    EXPECT_EQ(trained.exit_code, 0) << trained.err;
    std::filesystem::remove_all(folder_ / "run");
    std::filesystem::remove(folder_ / "best.toml");
  }
}

// What was predicted lies beside the job, and is held against what the job takes when it is run.
TEST_F(AdviseCommand, LeavesItsPredictionForTheRun) {
  const Ended ended = ask({"--strategies", "ring", "--write", "best.toml", "--seeds", "1"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const nlohmann::json prediction = json_in(folder_ / "best.prediction.json");
  ASSERT_TRUE(prediction.is_object());
  const Ended trained = run_tutti({"train", "best.toml", "--out", "run"}, options(), kLate_s);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_TRUE(says(trained.out, "predicted ")) << trained.out;
  EXPECT_TRUE(says(trained.out, " (simulated): ")) << trained.out;
  EXPECT_TRUE(says(trained.out, ", within the error")) << trained.out;
  const nlohmann::json record = json_in(folder_ / "run/run.json");
  EXPECT_EQ(record["prediction"]["predicted_s"], prediction["time_s"]);
  EXPECT_EQ(record["prediction"]["took_s"], record["time"]["to_target_s"]);
  EXPECT_EQ(record["prediction"]["within"], true);
  const std::string history = content_of(folder_ / "c/tutti/predictions.jsonl");
  EXPECT_TRUE(says(history, "\"obtained\":\"simulated\"")) << history;
  // Another job, and what is no prediction, are trained as ever.
  const Ended other = run_tutti({"train", "best.toml", "--out", "other", "--set", "task.epochs=3"},
                                options(), kLate_s);
  EXPECT_EQ(other.exit_code, 0) << other.err;
  EXPECT_TRUE(says(other.err, "best.prediction.json is not used: the job has other settings"));
  EXPECT_FALSE(says(other.out, "predicted ")) << other.out;
  EXPECT_FALSE(json_in(folder_ / "other/run.json").contains("prediction"));
  nlohmann::json foreign = prediction;
  foreign["task"] = "another one";
  write_text(folder_ / "best.prediction.json", foreign.dump());
  const Ended strange = run_tutti({"train", "best.toml", "--out", "strange"}, options(), kLate_s);
  EXPECT_EQ(strange.exit_code, 0) << strange.err;
  EXPECT_TRUE(says(strange.err, "is not used: the task or its data is another one"));
  EXPECT_FALSE(says(strange.out, "predicted ")) << strange.out;
  write_text(folder_ / "best.prediction.json", "{");
  const Ended damaged = run_tutti({"train", "best.toml", "--out", "damaged"}, options(), kLate_s);
  EXPECT_EQ(damaged.exit_code, 0) << damaged.err;
  EXPECT_TRUE(says(damaged.err, "best.prediction.json is damaged")) << damaged.err;
}

// Five real runs of jobs for a cluster widen the intervals of the next advice for it by as much as
// they were off; simulated ones, those of other clusters and those that were over at once do not.
TEST_F(AdviseCommand, LearnsFromRealRunsHowFarItIsOff) {
  write_text(folder_ / "cluster.toml",
             "[cluster]\nfabric = \"virtual\"\nworkers = 2\nnodes_per_host = 2\n");
  const Arguments near = {"--strategies", "ring", "--seeds", "1"};
  Arguments write = near;
  write.insert(write.end(), {"--write", "best.toml"});
  const Ended ended = ask(write);
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const Ended trained =
      run_tutti({"train", "best.toml", "--out", "run", "--set", "cluster.fabric=process"},
                options(), kLate_s);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_TRUE(says(trained.out, " (measured): ")) << trained.out << trained.err;
  const std::string history = folder_ / "c/tutti/predictions.jsonl";
  nlohmann::json line = nlohmann::json::parse(content_of(history), nullptr, false);
  ASSERT_TRUE(line.is_object()) << content_of(history);
  EXPECT_EQ(line["obtained"], "measured");
  EXPECT_EQ(line["cluster_name"], "cluster");
  const auto asked = [&](const std::string& obtained, const std::string& cluster, int runs,
                         double took_s = 30) {
    line["obtained"] = obtained;
    line["cluster_name"] = cluster;
    line["predicted_s"] = 10;
    line["took_s"] = took_s;
    std::string text;
    for (int i = 0; i < runs; ++i) text += line.dump() + "\n";
    write_text(history, text);
    Arguments json = near;
    json.push_back("--json");
    return nlohmann::json::parse(ask(json).out, nullptr, false)["choices"][0];
  };
  const nlohmann::json wide = asked("measured", "cluster", 5);
  ASSERT_TRUE(wide.is_object());
  EXPECT_NEAR(wide["error"].get<double>(), 2, 1e-6);
  EXPECT_GT(wide["errors"]["history"].get<double>(), 0.3);
  for (const nlohmann::json& usual :
       {asked("measured", "cluster", 4), asked("simulated", "cluster", 9),
        asked("measured", "far", 9), asked("measured", "cluster", 9, 0.5)})
    EXPECT_FALSE(usual["errors"].contains("history")) << usual;
}

TEST_F(AdviseCommand, KeepsWhatItLearned) {
  const Ended first = ask({"--strategies", "solo,ring"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_TRUE(says(first.err, "learning: ")) << first.err;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "c/tutti/lessons"));
  const Ended second = ask({"--strategies", "solo,ring"});
  EXPECT_FALSE(says(second.err, "learning: ")) << second.err;
  EXPECT_TRUE(says(second.out, "--no-cache learns anew")) << second.out;
  const Ended anew = ask({"--strategies", "solo,ring", "--no-cache"});
  EXPECT_TRUE(says(anew.err, "learning: ")) << anew.err;
}

TEST_F(AdviseCommand, PrintsTheAnswerSoFarWhenItIsInterrupted) {
  for (const bool json : {false, true}) {
    Arguments words = command({"--strategies", "solo,ring", "--seeds", "100", "--no-cache"});
    if (json) words.push_back("--json");
    Subprocess process(words, options());
    ASSERT_TRUE(eventually([&] { return says(process.err(), " s: Use "); }, kLate_s))
        << process.err();
    process.signal_group(SIGINT);
    const Ended ended = process.wait(kSoonS);
    EXPECT_FALSE(ended.late);
    EXPECT_EQ(ended.exit_code, kExitInterrupted) << ended.err;
    if (!json) {
      EXPECT_TRUE(says(ended.out, "Interrupted: this is the answer so far.")) << ended.out;
      continue;
    }
    const auto advice = nlohmann::json::parse(ended.out, nullptr, false);
    ASSERT_TRUE(advice.is_object()) << ended.out;
    EXPECT_EQ(advice["status"], "interrupted");
    EXPECT_TRUE(says(advice["sentence"], "Use ")) << advice["sentence"];
  }
}

// Measuring this machine takes half a minute, and ends at once when it is told to.
TEST_F(AdviseCommand, EndsWhileItMeasuresThisMachine) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Subprocess process({"advise", "job.toml", "--cluster", "here", "--set", "task.target=0.5"},
                       options());
    ASSERT_TRUE(eventually([&] { return says(process.err(), "measuring this machine"); }, kLate_s));
    process.signal_group(signal);
    const Ended ended = process.wait(kSoonS);
    EXPECT_FALSE(ended.late);
    EXPECT_EQ(ended.exit_code, kExitInterrupted) << ended.err;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "c/tutti/here.toml"));
  }
}

// A job that an advice wrote has all speeds of its cluster, which real processes do not have.
TEST_F(AdviseCommand, TellsManyDroppedSettingsInOneLine) {
  std::string job = small_job();
  job.replace(job.find("process"), 7, "virtual");
  write_text(folder_ / "virtual.toml",
             job + "latency = \"1 ms\"\nbandwidth = \"1 MB/s\"\nspeed = \"1 GFLOP/s\"\n" +
                 "nodes_per_host = 2\nidle_power = \"1 W\"\nbusy_power = \"2 W\"\n");
  const Arguments check = {"check", "virtual.toml", "--set", "cluster.fabric=process"};
  const Ended ended = run_tutti(check, options(), kLate_s);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
  EXPECT_TRUE(says(ended.err, "6 settings have no meaning here and were dropped: ")) << ended.err;
  for (const char* key : {"cluster.latency", "cluster.nodes_per_host", "cluster.busy_power"})
    EXPECT_TRUE(says(ended.err, key)) << ended.err;
  Arguments quiet = check;
  quiet.push_back("-q");
  EXPECT_EQ(run_tutti(quiet, options(), kLate_s).err, "");
}

TEST_F(AdviseCommand, RefusesABudgetThatIsNone) {
  for (const char* budget : {"0", "-3s", "soon", "5 parsecs"}) {
    const Ended ended = ask({std::string("--budget=") + budget});
    EXPECT_EQ(ended.exit_code, kExitBadJob) << budget;
    EXPECT_TRUE(says(ended.err, "--budget")) << ended.err;
    EXPECT_TRUE(says(ended.err, "10min")) << ended.err;
  }
}

// A line for each reason, as in a comparison; in full where that is wanted.
TEST_F(AdviseCommand, SaysBrieflyWhatIsNotPossible) {
  const Ended brief = ask({"--strategies", "solo,direct,hierarchical"});
  ASSERT_EQ(brief.exit_code, 0) << brief.err;
  EXPECT_TRUE(says(brief.out, "Not possible here (--verbose says all of it)\n")) << brief.out;
  EXPECT_TRUE(says(brief.out, "  direct: ")) << brief.out;
  const Ended full = ask({"--strategies", "solo,direct,hierarchical", "--verbose"});
  EXPECT_TRUE(says(full.out, "Not possible here\n")) << full.out;
  const auto reason_in = [](const std::string& text) {
    const size_t begin = text.find("  direct: ");
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  EXPECT_LE(reason_in(brief.out).size(), 100u) << brief.out;
  EXPECT_LT(reason_in(brief.out).size(), reason_in(full.out).size()) << full.out;
}

// With every variant of the catalog no name is cut.
TEST_F(AdviseCommand, CutsNoName) {
  const Ended ended = ask({"--strategies", "elastic-averaging-async,solo,diloco-streaming"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_TRUE(says(ended.out, " elastic-averaging-async ")) << ended.out;
}

}  // namespace
}  // namespace tutti
