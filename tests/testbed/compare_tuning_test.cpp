// `tutti compare --tune` as its users meet it.
#include <gtest/gtest.h>

#include <filesystem>

#include "fabric/outcome.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;
using nlohmann::json;

constexpr const char* kJob = R"(name = "small"
[task]
data = { kind = "synthetic-classes", samples = 400, features = 8, classes = 3 }
model = "logistic"
global_batch = 20
epochs = 2
eval_every = 0.5
target = 0.6
[optimizer]
lr = 0.1
[cluster]
fabric = "virtual"
workers = 4
)";

const Arguments kTune = {"--tune", "optimizer.lr=0.0001,0.05,0.2", "--quiet"};

class CompareTuning : public testing::Test {
 protected:
  CompareTuning() { write_text(folder_ / "job.toml", kJob); }
  Ended run(const Arguments& arguments) {
    return run_tutti(Arguments{"compare", "job.toml"} + arguments, {.folder = folder_.path()}, 120);
  }
  json row(const std::string& out, const std::string& name) {
    const json comparison = json_in(folder_ / (out + "/compare.json"));
    for (const json& each : comparison["strategies"])
      if (each["name"] == name) return each;
    ADD_FAILURE() << "no strategy " << name;
    return json::object();
  }
  double rate_of(const std::string& job) { return load_job(folder_ / job, {}).optimizer.lr; }
  TemporaryFolder folder_;
};

TEST_F(CompareTuning, EachRunsWithWhatItFoundAndSaysWhatThatCost) {
  const Ended ended =
      run(Arguments{"--strategies", "solo,ring,fedavg", "--out", "a", "--seeds", "2"} + kTune);
  ASSERT_EQ(ended.exit_code, kExitDone) << ended.err;
  for (const char* name : {"solo", "ring", "fedavg"}) {
    const json strategy = row("a", name), tuning = strategy["tuning"];
    EXPECT_EQ(tuning["setting"], "optimizer.lr");
    EXPECT_EQ(tuning["range"], "0.0001,0.05,0.2");
    ASSERT_EQ(tuning["trials"].size(), 3u) << "all have the same budget";
    double total_s = 0, energy_j = 0;
    for (const json& trial : tuning["trials"]) {
      total_s += trial["total_s"].get<double>();
      energy_j += trial["energy_j"].get<double>();
      EXPECT_EQ(trial["samples"], tuning["trials"][0]["samples"]);
    }
    EXPECT_DOUBLE_EQ(tuning["total_s"], total_s);
    EXPECT_DOUBLE_EQ(tuning["energy_j"], energy_j);
    EXPECT_GT(tuning["value"], 0.0001) << "by which nothing is learnt";
    EXPECT_EQ(tuning["at_edge"], tuning["value"] == 0.2);
    EXPECT_EQ(strategy["seeds"], (json{1, 2})) << "the seed of the trials does not count";
    for (const char* seed : {"1", "2"})
      EXPECT_EQ(rate_of(std::string("a/jobs/") + name + "-seed" + seed + ".toml"),
                tuning["value"].get<double>());
  }
  EXPECT_EQ(row("a", "ring")["tuning"]["value"], row("a", "solo")["tuning"]["value"])
      << "they learn alike";
  EXPECT_GT(row("a", "ring")["tuning"]["total_s"], row("a", "solo")["tuning"]["total_s"])
      << "each pays for its own trials";
  EXPECT_NE(ended.out.find("optimizer.lr"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("What the search costs each"), std::string::npos) << ended.out;
}

TEST_F(CompareTuning, WhatWasFoundCanBeKept) {
  ASSERT_EQ(run(Arguments{"--strategies", "ring,fedavg", "--out", "a"} + kTune).exit_code,
            kExitDone);
  const std::string entries = content_of(folder_ / "a/tuned.toml");
  EXPECT_NE(entries.find("tutti compare job.toml --tune optimizer.lr=0.0001,0.05,0.2"),
            std::string::npos)
      << entries;
  write_text(folder_ / "job.toml", kJob + entries);
  const Ended kept = run({"--strategies", "ring,fedavg", "--out", "b", "--quiet"});
  ASSERT_EQ(kept.exit_code, kExitDone) << kept.err;
  for (const char* name : {"ring", "fedavg"}) {
    EXPECT_EQ(row("b", name)["total_s"], row("a", name)["total_s"]);
    EXPECT_EQ(row("b", name)["quality"], row("a", name)["quality"]);
    EXPECT_FALSE(row("b", name).contains("tuning"));
  }
}

TEST_F(CompareTuning, GoesOnWhereItEndedAndWithNothingElse) {
  const Arguments same = {"--strategies", "ring,fedavg", "--out", "a"};
  ASSERT_EQ(run(same + kTune).exit_code, kExitDone);
  const auto written = [&] {
    return std::filesystem::last_write_time(folder_ /
                                            "a/tuning/runs/fedavg-0.05-seed1000001/run.json");
  };
  const auto before = written();
  std::filesystem::remove_all(folder_ / "a/tuning/runs/fedavg-0.2-seed1000001");
  const json result = row("a", "fedavg");
  const Ended again = run(same + Arguments{"--tune", "optimizer.lr=0.0001,0.05,0.2"});
  ASSERT_EQ(again.exit_code, kExitDone) << again.err;
  EXPECT_EQ(written(), before) << "what was there is kept";
  EXPECT_NE(again.err.find("tuning optimizer.lr by 6 trial runs"), std::string::npos) << again.err;
  EXPECT_EQ(row("a", "fedavg")["tuning"]["value"], result["tuning"]["value"]);
  const Ended other = run(same + Arguments{"--tune", "optimizer.lr=0.1,0.2"});
  EXPECT_EQ(other.exit_code, kExitBadJob);
  EXPECT_NE(other.err.find("holds a comparison with --tune"), std::string::npos) << other.err;
  EXPECT_EQ(run(same).exit_code, kExitBadJob) << "without --tune it is another comparison";
}

// What is simulated and learns the same decides for what would have to be measured.
TEST_F(CompareTuning, WhatIsMeasuredTakesOverWhatItsClassHasFound) {
  write_text(folder_ / "job.toml", std::string(kJob) +
                                       "[[compare]]\nname = \"real\"\n"
                                       "cluster = { fabric = \"process\", workers = 2 }\n");
  const Ended ended = run(Arguments{"--strategies", "solo,real", "--out", "a"} + kTune);
  ASSERT_EQ(ended.exit_code, kExitDone) << ended.err;
  const json real = row("a", "real")["tuning"];
  EXPECT_EQ(real["tried_by"], "solo");
  EXPECT_EQ(real["value"], row("a", "solo")["tuning"]["value"]);
  EXPECT_EQ(real["trials"], json::array());
  EXPECT_EQ(rate_of("a/jobs/real-seed1.toml"), real["value"].get<double>());
  const std::string entries = content_of(folder_ / "a/tuned.toml");
  EXPECT_NE(entries.find("# real: optimizer.lr"), std::string::npos)
      << "an entry cannot be given twice: " << entries;
}

TEST_F(CompareTuning, RefusesWhatItCannotDo) {
  const auto refusal = [&](const Arguments& arguments) {
    const Ended ended = run(arguments + Arguments{"--strategies", "ring", "--out", "x"});
    EXPECT_EQ(ended.exit_code, kExitBadJob) << ended.err;
    return ended.err;
  };
  EXPECT_NE(refusal({"--budget", "3"}).find("--budget is of trials for --tune"), std::string::npos);
  EXPECT_NE(refusal({"--tune", "optimizer.lr=1,2", "--tune", "strategy.sync_every=2,4"})
                .find("takes one setting"),
            std::string::npos);
  EXPECT_NE(refusal({"--tune", "optimizer.speed=1,2"}).find("ring cannot take it"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x")) << "before anything is written";
  EXPECT_NE(refusal({"--tune", "strategy.bucket=1,2,3"}).find("no trial is possible: "),
            std::string::npos);
}

}  // namespace
}  // namespace tutti
