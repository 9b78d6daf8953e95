// What the program prints, for people and for machines.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "core/schema.h"
#include "fabric/outcome.h"
#include "jobs/recipes.h"
#include "jobs/run_record.h"
#include "jobs/tasks.h"
#include "tests/cli/key_types.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;
using nlohmann::json;

class Output : public testing::Test {
 protected:
  void SetUp() override { write_text(folder_ / "job.toml", small_job()); }
  Ended run(const Arguments& arguments) {
    const Ended ended = run_tutti(arguments, {.folder = folder_.path()});
    EXPECT_EQ(ended.exit_code, kExitDone) << ended.err;
    return ended;
  }
  // One JSON value on one line, and nothing else.
  json run_json(const Arguments& arguments) {
    const Ended ended = run(arguments + Arguments{"--json"});
    EXPECT_EQ(std::count(ended.out.begin(), ended.out.end(), '\n'), 1) << ended.out;
    const json value = json::parse(ended.out, nullptr, false);
    EXPECT_FALSE(value.is_discarded()) << ended.out;
    return value;
  }
  json train(const std::string& out, const Arguments& sets) {
    Arguments arguments = {"train", "job.toml", "--out", out};
    for (const std::string& set : sets) arguments = arguments + Arguments{"--set", set};
    return run_json(arguments);
  }
  // A recipe is found right, but for data that is not on this machine.
  void expect_checked(const std::string& recipe) {
    if (missing_files(load_job(recipe, {})).empty()) {
      EXPECT_EQ(run_json({"check", recipe}).value("ok", false), true) << recipe;
      return;
    }
    const Ended ended = run_tutti({"check", recipe}, {.folder = folder_.path()});
    EXPECT_EQ(ended.exit_code, kExitBadJob) << recipe;
    EXPECT_TRUE(has(ended.err, ": task.data")) << ended.err;
  }
  TemporaryFolder folder_;
};

const std::vector<std::pair<std::string, std::string>> kRecordKeys = {{"schema", "i"},
                                                                      {"name", "s"},
                                                                      {"status", "s"},
                                                                      {"exit_code", "i"},
                                                                      {"strategy", "s"},
                                                                      {"taxonomy", "o"},
                                                                      {"fabric", "s"},
                                                                      {"workers", "i"},
                                                                      {"seed", "i"},
                                                                      {"obtained", "s"},
                                                                      {"quality.metric", "s"},
                                                                      {"quality.best", "n"},
                                                                      {"quality.final", "n"},
                                                                      {"quality.target", "n?"},
                                                                      {"quality.reached", "b"},
                                                                      {"time.clock", "s"},
                                                                      {"time.startup_s", "n"},
                                                                      {"time.to_target_s", "n?"},
                                                                      {"time.total_s", "n"},
                                                                      {"time.compute_s", "n"},
                                                                      {"time.communicate_s", "n"},
                                                                      {"time.aggregate_s", "n"},
                                                                      {"time.wait_s", "n"},
                                                                      {"time.cpu_s", "n"},
                                                                      {"peak_memory_bytes", "n"},
                                                                      {"utilisation", "n"},
                                                                      {"steps", "i"},
                                                                      {"samples_per_s", "n"},
                                                                      {"bytes_sent", "i"},
                                                                      {"messages", "i"},
                                                                      {"staleness.mean", "n"},
                                                                      {"staleness.max", "n"},
                                                                      {"energy.joules", "n"},
                                                                      {"energy.method", "s"},
                                                                      {"parameters_sha256", "s"},
                                                                      {"evaluations", "a"},
                                                                      {"nodes", "a"},
                                                                      {"versions.tutti", "s"},
                                                                      {"versions.libtorch", "s"},
                                                                      {"versions.simgrid", "s"},
                                                                      {"versions.ucx", "s"},
                                                                      {"machine.cpu", "s"},
                                                                      {"folder", "s"}};

TEST_F(Output, ShowsWholeNamesAndTimesThatAreNotNought) {
  const std::string name = "a-name-that-is-longer-than-any-column-was";
  train("run", {"name=" + name, "cluster.fabric=virtual"});
  const std::string shown = run({"show", "run"}).out;
  EXPECT_TRUE(has(shown, name + " ")) << shown;
  EXPECT_FALSE(has(shown, "0.00 s")) << shown;
  run({"compare", "job.toml", "--set", "cluster.fabric=virtual", "--strategies", "ring", "--out",
       "compared"});
  const Ended ended = run_tutti({"show", "compared"}, {.folder = folder_.path()});
  EXPECT_EQ(ended.exit_code, kExitBadJob);
  EXPECT_TRUE(has(ended.err, "is a comparison, not a run; `tutti report compared`")) << ended.err;
}

// Nobody means 30 different numbers to be 30 kinds without knowing it.
TEST_F(Output, ManyNumbersAsClassesAreAskedAbout) {
  const auto says = [&](int classes, const std::string& prefix) {
    std::string table = "a,b,y\n";
    for (int i = 0; i < 200; ++i)
      table += fmt::format("{},{},{}{}\n", i, i % 7, prefix, i % classes);
    write_text(folder_ / "table.csv", table);
    const Arguments data = {"--set", "task.data={ kind = \"csv\", path = \"table.csv\" }"};
    const bool checked =
        has(run(Arguments{"check", "job.toml"} + data).out, "task.data.regression = true");
    const bool trained =
        has(run(Arguments{"train", "job.toml"} + data).err, "task.data.regression = true");
    EXPECT_EQ(checked, trained);
    return checked;
  };
  EXPECT_TRUE(says(30, ""));
  EXPECT_FALSE(says(5, ""));
  EXPECT_FALSE(says(30, "kind "));
}

TEST_F(Output, TrainPrintsOneObjectWithEveryKey) {
  for (const std::string fabric : {"process", "virtual"}) {
    const json record = train(fabric, {"cluster.fabric=" + fabric, "task.target=0.1"});
    expect_types(record, kRecordKeys);
    EXPECT_EQ(record["schema"], kRunSchema);
    EXPECT_EQ(record["status"], "done");
    EXPECT_EQ(record["name"], "small");
    EXPECT_EQ(record["strategy"], "allreduce");
    EXPECT_EQ(record["fabric"], fabric);
    EXPECT_EQ(record["workers"], 2);
    EXPECT_EQ(record["seed"], 1);
    EXPECT_EQ(record["obtained"], fabric == "virtual" ? "simulated" : "measured");
    EXPECT_EQ(record["time"]["clock"], fabric == "virtual" ? "virtual" : "wall");
    EXPECT_EQ(record["quality"]["metric"], "accuracy");
    EXPECT_EQ(record["quality"]["target"], 0.1);
    EXPECT_EQ(record["quality"]["reached"], true);
    EXPECT_LE(record["time"]["to_target_s"], record["time"]["total_s"]);
    EXPECT_EQ(record["steps"], 18);  // 162 training samples in 9 batches of 20, twice
    EXPECT_EQ(record["nodes"].size(), 2u);
    EXPECT_GT(record["bytes_sent"], 0);
    EXPECT_EQ(record["parameters_sha256"].get<std::string>().size(), 64u);
    const double utilisation = record["utilisation"];
    EXPECT_TRUE(utilisation > 0 && utilisation <= 1) << utilisation;
    // The same is kept in the folder, with what else belongs there.
    EXPECT_EQ(json_in(folder_ / (fabric + "/run.json")), record);
    const std::string series = content_of(folder_ / (fabric + "/series.csv"));
    EXPECT_EQ(std::count(series.begin(), series.end(), '\n'), 1 + 18);
    for (const char* file :
         {"/job.toml", "/parameters.safetensors", "/evaluations.csv", "/node-0.log", "/node-1.log"})
      EXPECT_TRUE(std::filesystem::exists(folder_ / (fabric + file))) << file;
    for (const char* rank : {"0", "1"})
      EXPECT_TRUE(has(content_of(folder_ / (fabric + "/node-" + rank + ".log")),
                      std::string("rank ") + rank + " of 2"))
          << fabric << ", " << rank;
  }
}

TEST_F(Output, VirtualRunsReplayExactly) {
  const Arguments sets = {"cluster.fabric=virtual", "cluster.workers=3", "task.model=mlp"};
  json first = train("first", sets), second = train("second", sets);
  const json other = train("other", sets + Arguments{"task.seed=2"});
  EXPECT_NE(first["parameters_sha256"], other["parameters_sha256"]);
  for (json* record : {&first, &second}) {
    record->erase("folder");
    (*record)["time"].erase("startup_s");
    (*record)["time"].erase("data_s");
    (*record)["time"].erase("wall_s");
  }
  EXPECT_EQ(first, second);
  for (const char* file : {"parameters.safetensors", "series.csv", "evaluations.csv", "node-1.log"})
    EXPECT_EQ(content_of(folder_ / ("first/" + std::string(file))),
              content_of(folder_ / ("second/" + std::string(file))))
        << file;
}

TEST_F(Output, AMissedTargetIsSaidAndIsNoError) {
  const Ended ended =
      run({"train", "job.toml", "--set", "task.target=1", "--set", "task.data.noise=100"});
  EXPECT_TRUE(has(ended.out, "target    1 not reached")) << ended.out;
  EXPECT_TRUE(has(ended.out, "runs/small-allreduce-")) << ended.out;
  EXPECT_TRUE(has(ended.err, "epoch")) << "a line of progress when not on a terminal";
  EXPECT_FALSE(has(ended.err, "\r"));
}

// Whether a target was missed is said of those alone that had one and were measured.
TEST_F(Output, RunsSideBySide) {
  train("aimless", {});
  train("missed", {"name=missed", "task.target=1", "task.data.noise=100"});
  const std::string virtually = "cluster.fabric=virtual";
  train("cost", {virtually, "cluster.cost_only=true", "task.target=1"});
  const auto misses = [&](const Arguments& runs) {
    return has(run(Arguments{"show"} + runs).out, " missed ");
  };
  EXPECT_FALSE(misses({"aimless"}));
  EXPECT_TRUE(misses({"missed"}));
  EXPECT_FALSE(misses({"cost"}));
  EXPECT_EQ(run_json({"show", "aimless", "missed"}).size(), 2u);
}

TEST_F(Output, OverridesChangeAnySetting) {
  const json record =
      train("o", {"name=other", "task.data.samples=300", "task.data.classes=4", "task.model=mlp",
                  "task.model.hidden=[5, 7]", "optimizer.kind=adam", "optimizer.beta1=0.8",
                  "strategy.topology=butterfly", "cluster.workers=3", "cluster.timeout=\"30 s\""});
  EXPECT_EQ(record["name"], "other");
  EXPECT_EQ(record["workers"], 3);
  const std::string job = content_of(folder_ / "o/job.toml");
  for (const char* line :
       {"samples = 300\n", "classes = 4\n", "kind = \"mlp\"\n", "hidden = [5, 7]\n",
        "beta1 = 0.8\n", "topology = \"butterfly\"\n", "timeout = 30.0\n", "features = 8\n"})
    EXPECT_TRUE(has(job, line)) << line << job;
  // A component that is a name in the file, or not there at all, can get settings too.
  EXPECT_EQ(run_json({"check", "job.toml", "--set", "task.model.l2=0.1"})["parameters"], 27);
  EXPECT_EQ(run_json({"check", "job.toml", "--set", "task.data=fashion-mnist", "--set",
                      "task.data.limit=100"})["samples"]["train"],
            100);
}

// The job in the run folder says everything: it trains to the same parameters.
TEST_F(Output, TheResolvedJobTrainsTheSame) {
  const Arguments sets = {"cluster.fabric=virtual", "task.deterministic=true"};
  const json record = train("first", sets);
  const json again = run_json({"train", "first/job.toml", "--out", "again"});
  EXPECT_EQ(again["parameters_sha256"], record["parameters_sha256"]);
  EXPECT_EQ(again["time"]["total_s"], record["time"]["total_s"]);
  EXPECT_EQ(content_of(folder_ / "again/job.toml"), content_of(folder_ / "first/job.toml"));
}

TEST_F(Output, ListsInBothFormats) {
  const std::vector<std::pair<std::string, std::string>> lists = {
      {"strategies", "allreduce"}, {"topologies", "butterfly"}, {"optimizers", "adamw"},
      {"models", "lenet"},         {"data", "fashion-mnist"},   {"fabrics", "virtual"}};
  for (const auto& [kind, member] : lists) {
    EXPECT_TRUE(has(run({"list", kind}).out, member)) << kind;
    const json list = run_json({"list", kind});
    ASSERT_TRUE(list.is_array()) << kind;
    std::set<std::string> names;
    for (const json& entry : list) {
      names.insert(entry.at("name").get<std::string>());
      EXPECT_FALSE(entry.at("summary").get<std::string>().empty());
    }
    EXPECT_EQ(names.size(), list.size());
    EXPECT_TRUE(names.contains(member)) << kind;
  }
  for (const json& strategy : run_json({"list", "strategies"}))
    expect_types(strategy, {{"structure", "s"},
                            {"parallelism", "s"},
                            {"optimisation", "s"},
                            {"timing", "s"},
                            {"pattern", "s"},
                            {"data", "s"},
                            {"stragglers", "s"},
                            {"communication", "s"},
                            {"computation", "s"}});
  const std::string reference = run({"list", "settings"}).out;
  std::set<std::string> keys;
  for (const json& setting : run_json({"list", "settings"})) {
    expect_types(setting, {{"values", "s"}, {"default", "s"}, {"meaning", "s"}});
    const std::string table = setting.at("table"), key = setting.at("key");
    keys.insert(table + "." + key);
    EXPECT_TRUE(has(reference, "| `" + key + "` |")) << key;
  }
  for (const char* key : {".name", "task.global_batch", "optimizer.lr", "strategy.topology",
                          "cluster.workers", "cluster.faults.kind", "task.model.hidden"})
    EXPECT_TRUE(keys.contains(key)) << key;
}

TEST_F(Output, CheckSaysWhatToExpect) {
  const json report = run_json({"check", "job.toml"});
  expect_types(report, {{"job", "s"},
                        {"ok", "b"},
                        {"samples.train", "i"},
                        {"samples.validation", "i"},
                        {"samples.test", "i"},
                        {"parameters", "i"},
                        {"steps", "i"},
                        {"flops_per_step", "n"},
                        {"memory_bytes_per_worker", "n"},
                        {"bytes_sent_per_step", "n"},
                        {"messages_per_step", "n"}});
  EXPECT_EQ(report["parameters"], 8 * 3 + 3);
  EXPECT_EQ(report["steps"], 18);
  // A ring of two sends each half once to be summed and once as a sum: 27 floats in all.
  EXPECT_EQ(report["bytes_sent_per_step"], 27 * 4);
  EXPECT_EQ(report["messages_per_step"], 2);
  EXPECT_TRUE(has(run({"check", "job.toml"}).out, "small: ok"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs"));
}

TEST_F(Output, EveryRecipePassesTheCheck) {
  size_t recipes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TUTTI_SOURCE "/recipes")) {
    if (entry.path().extension() != ".toml") continue;
    expect_checked(entry.path().string());
    ++recipes;
  }
  EXPECT_GE(recipes, 5u);
}

TEST_F(Output, EveryClusterAndTaskPassesTheCheck) {
  const std::vector<std::string> clusters = recipe_names("clusters");
  EXPECT_GE(clusters.size(), 5u);
  for (const std::string& name : clusters)
    EXPECT_EQ(run_json({"check", "job.toml", "--cluster", name, "--set", "task.global_batch=100"})
                  .value("ok", false),
              true)
        << name;
  for (const ReferenceTask& task : reference_tasks()) expect_checked(recipe_of(task));
}

TEST_F(Output, HelpShowsAnExample) {
  EXPECT_TRUE(has(run({"--help"}).out, "Example"));
  EXPECT_TRUE(has(run({"--help"}).out, "130 interrupted"));
  for (const std::string command :
       {"train", "check", "predict", "show", "report", "list", "doctor", "bench"})
    EXPECT_TRUE(has(run({command, "--help"}).out, "Example") &&
                has(run({command, "--help"}).out, " tutti " + command))
        << command;
  EXPECT_TRUE(has(run({"--version"}).out, "tutti 0."));
}

// `tutti list settings | head -1`, with a reader that is gone before the first byte.
TEST_F(Output, AReaderThatLeavesIsNoError) {
  for (const Arguments& arguments :
       {Arguments{"list", "settings"}, Arguments{"list", "strategies"}, Arguments{"doctor"},
        Arguments{"check", "job.toml"}, Arguments{"train", "job.toml", "--json"}}) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    const Ended ended = run_tutti(arguments, {.folder = folder_.path(), .out = ends[1]});
    close(ends[1]);
    EXPECT_EQ(ended.exit_code, kExitDone) << arguments[0] << ": " << ended.err;
    EXPECT_FALSE(has(ended.err, "tutti: ")) << ended.err;
  }
}

TEST_F(Output, AFullOutputIsAnError) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  const Ended ended = run_tutti({"list", "settings"}, {.folder = folder_.path(), .out = full});
  EXPECT_EQ(ended.exit_code, kExitInternal);
  EXPECT_TRUE(has(ended.err, "No space left")) << ended.err;
  // Progress and messages that nobody can read change nothing.
  const SubprocessOptions deaf{.folder = folder_.path(), .err = full};
  EXPECT_EQ(run_tutti({"train", "job.toml"}, deaf).exit_code, kExitDone);
  EXPECT_EQ(run_tutti({"train", "none.toml"}, deaf).exit_code, kExitBadJob);
  close(full);
}

}  // namespace
}  // namespace tutti
