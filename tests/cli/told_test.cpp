// Tests what a run reports beside its result: dropped settings, the scales of features, and that
// nothing was learnt. Its files must report the same.
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "fabric/outcome.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;
using nlohmann::json;

class Told : public testing::Test {
 protected:
  Told() { write_text(folder_ / "job.toml", small_job()); }
  Ended run(const Arguments& arguments) {
    const Ended ended = run_tutti(arguments, {.folder = folder_.path()});
    EXPECT_EQ(ended.exit_code, kExitDone) << ended.err;
    return ended;
  }
  // The first feature is 10^7 times the second, but only the second tells the classes apart.
  void write_raw_numbers() {
    std::string table = "a,b,kind\n";
    for (int i = 0; i < 300; ++i)
      table += fmt::format("{},{},{}\n", 10000 + 7919 * i % 9973, i % 2 ? 0.001 : 0.002,
                           i % 2 ? "x" : "y");
    write_text(folder_ / "raw.csv", table);
    std::string job = small_job();
    const size_t begin = job.find("{ kind"), end = job.find('\n', begin);
    write_text(folder_ / "raw.toml",
               job.replace(begin, end - begin, "{ kind = \"csv\", path = \"raw.csv\" }"));
  }
  TemporaryFolder folder_;
};

TEST_F(Told, WhatAKindOfTheCommandLineDropped) {
  const std::string dropped =
      "tutti: job.toml:12: strategy.topology = \"ring\" is not a setting of gossip and was "
      "dropped\n";
  const Arguments gossip = {"--set", "strategy.kind=gossip"};
  EXPECT_EQ(run(Arguments{"check", "job.toml"} + gossip).err, dropped);
  EXPECT_EQ(run(Arguments{"train", "job.toml", "--quiet", "--out", "a"} + gossip).err, dropped);
  const Ended program =
      run(Arguments{"train", "job.toml", "--progress", "json", "--out", "b"} + gossip);
  EXPECT_FALSE(has(program.err, "dropped")) << "a program reads objects alone";
  const Ended compared = run({"compare", "job.toml", "--strategies", "gossip,ring", "--quiet",
                              "--set", "cluster.fabric=virtual", "--out", "c"});
  EXPECT_FALSE(has(compared.err, "dropped")) << compared.err;
}

TEST_F(Told, WhatFeaturesAreLike) {
  write_raw_numbers();
  const Ended scaled = run({"train", "raw.toml", "--out", "a", "--set", "task.epochs=20"});
  EXPECT_TRUE(has(scaled.err, "features: 2 numbers from 0.001 to ")) << scaled.err;
  EXPECT_TRUE(has(scaled.err, ", standardised\n")) << scaled.err;
  EXPECT_FALSE(has(scaled.out, "chance")) << scaled.out;
  EXPECT_GT(json_in(folder_ / "a/run.json")["quality"]["last"], 0.9);
  EXPECT_TRUE(has(content_of(folder_ / "a/job.toml"), "standardise = true\n"));

  const std::string plain = "task.data.standardise=false";
  const Ended raw = run({"check", "raw.toml", "--set", plain});
  EXPECT_TRUE(has(raw.out, "as they are in the file; their scales differ")) << raw.out;
  EXPECT_TRUE(has(raw.out, "task.data.standardise = true")) << raw.out;
  // The rate is so small that nothing is learnt from the feature that matters.
  const Ended stuck = run({"train", "raw.toml", "--quiet", "--out", "b", "--set", plain, "--set",
                           "optimizer.lr=1e-12"});
  EXPECT_EQ(stuck.err, "");
  EXPECT_TRUE(has(stuck.out, "is no better than guessing (0.5000); try task.data.standardise"))
      << stuck.out;
}

// evaluations.csv and series.csv, which grow during the run, and run.json, written at the end, use
// one clock. Reading so many samples takes longer than a step, so leaving it out would show.
TEST_F(Told, EvaluationsAreThoseOfTheRecord) {
  for (const std::string fabric : {"process", "virtual"}) {
    run({"train", "job.toml", "--quiet", "--out", fabric, "--set", "cluster.fabric=" + fabric,
         "--set", "task.data.samples=20000"});
    const json record = json_in(folder_ / (fabric + "/run.json"));
    std::istringstream file(content_of(folder_ / (fabric + "/evaluations.csv")));
    std::string line;
    std::getline(file, line);
    EXPECT_TRUE(line.starts_with("step,time_s,")) << line;
    ASSERT_EQ(record["evaluations"].size(), 2u);
    for (const json& row : record["evaluations"]) {
      ASSERT_TRUE(std::getline(file, line));
      EXPECT_TRUE(line.starts_with(row["step"].dump() + ",")) << line;
      const size_t second = line.find(',') + 1;
      EXPECT_NEAR(std::stod(line.substr(second)), row["time_s"].get<double>(), 1e-9) << fabric;
      EXPECT_NEAR(std::stod(line.substr(line.rfind(',') + 1)), row["quality"].get<double>(), 1e-12);
    }
    const json& first = record["evaluations"][0];
    std::istringstream series(content_of(folder_ / (fabric + "/series.csv")));
    std::getline(series, line);
    while (std::getline(series, line)) {
      const int64_t step = std::stoll(line);
      const double time_s = std::stod(line.substr(line.find(',') + 1));
      const bool before = step <= first["step"].get<int64_t>();
      EXPECT_EQ(time_s <= first["time_s"].get<double>(), before) << fabric << " " << line;
    }
  }
}

TEST_F(Told, RunsThatShareACurveShowItsQuality) {
  run({"compare", "job.toml", "--strategies", "ring,tree", "--quiet", "--set",
       "cluster.fabric=virtual", "--out", "c"});
  std::vector<json> runs;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "c/runs"))
    runs.push_back(json::parse(run({"show", entry.path(), "--json"}).out)[0]);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_TRUE(runs[0]["quality"]["final"].is_number());
  for (const char* figure : {"best", "last", "final"})
    EXPECT_EQ(runs[0]["quality"][figure], runs[1]["quality"][figure]) << figure;
}

// Each quality stands under its own name. The figures are written into the record by hand, so that
// all three differ.
TEST_F(Told, FinalAndBestQualityByName) {
  run({"train", "job.toml", "--quiet", "--out", "a"});
  json record = json_in(folder_ / "a/run.json");
  record["quality"]["final"] = 0.1111;
  record["quality"]["last"] = 0.2222;
  record["quality"]["best"] = 0.3333;
  write_text(folder_ / "a/run.json", record.dump());
  const std::string shown = run({"show", "a"}).out;
  EXPECT_TRUE(has(shown, "final test final val best val")) << shown;
  EXPECT_TRUE(has(shown, "0.1111    0.2222   0.3333")) << shown;
}

}  // namespace
}  // namespace tutti
