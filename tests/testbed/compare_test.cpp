// `tutti compare` as its users meet it: what it shares, what it survives and what it says.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include <filesystem>
#include <map>

#include "core/described_json.h"
#include "core/random.h"
#include "fabric/outcome.h"
#include "strategies/pipeline/pipeline.h"
#include "strategies/scheduled/scheduled.h"
#include "testbed/summary.h"
#include "tests/support/proc.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;
using nlohmann::json;
namespace fs = std::filesystem;

std::string virtual_job(const std::string& epochs = "2") {
  return "name = \"small\"\n[task]\n"
         "data = { kind = \"synthetic-classes\", samples = 400, features = 8, classes = 3 }\n"
         "model = \"logistic\"\nglobal_batch = 20\nepochs = " +
         epochs +
         "\neval_every = 0.5\ntarget = 0.6\n[optimizer]\nkind = \"sgd\"\nlr = 0.1\n"
         "[cluster]\nfabric = \"virtual\"\nworkers = 4\n";
}

class Compare : public testing::Test {
 protected:
  Compare() { write_text(folder_ / "job.toml", virtual_job()); }
  Ended run(const Arguments& arguments, rlim_t file_size = RLIM_INFINITY) {
    Arguments all = {"compare", "job.toml"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return run_tutti(all, {.folder = folder_.path(), .file_size = file_size}, 120);
  }
  json result(const std::string& out) { return json_in(folder_ / (out + "/compare.json")); }
  static json row(const json& comparison, const std::string& name) {
    for (const json& candidate : comparison["strategies"])
      if (candidate["name"] == name) return candidate;
    ADD_FAILURE() << "no strategy " << name;
    return json::object();
  }
  // Without what depends on this machine's clock and on where and when it was.
  static json figures(json comparison) {
    comparison.erase("created");
    comparison.erase("spent");
    for (json& strategy : comparison["strategies"])
      for (const char* key : {"wall_s", "startup_s"}) strategy.erase(key);
    return comparison;
  }
  TemporaryFolder folder_;
};

constexpr const char* kTimes[] = {"to_target_s", "total_s",        "time_split", "cpu_s",
                                  "bytes_total", "messages_total", "energy_j",   "age_s",
                                  "steps",       "utilisation",    "cost"};

// The same times to the last bit, and the same qualities: bitwise in deterministic mode, otherwise
// within a sample of 60 or so, because sums are rounded in another order.
TEST_F(Compare, SharedCurvesChangeNothing) {
  for (const std::string deterministic : {"true", "false"}) {
    const Arguments common = {"--strategies",
                              "solo,ring,tree",
                              "--quiet",
                              "--seeds",
                              "2",
                              "--set",
                              "task.deterministic=" + deterministic};
    const std::string with = "shared-" + deterministic, without = "own-" + deterministic;
    ASSERT_EQ(run(common + Arguments{"--out", with}).exit_code, kExitDone);
    ASSERT_EQ(run(common + Arguments{"--out", without, "--no-sharing"}).exit_code, kExitDone);
    const json shared = result(with), own = result(without);
    // The run folders tell the same, wherever they are read from.
    std::vector<std::string> folders;
    for (const char* name : {"ring", "solo", "tree"})
      for (const char* seed : {"1", "2"})
        folders.push_back(folder_ / (with + "/runs/" + name + "-seed" + seed));
    const json read = json_of(summarise_runs(folders));
    ASSERT_EQ(shared["strategies"].size(), 3u);
    for (const json& strategy : shared["strategies"]) {
      const std::string name = strategy["name"];
      const json other = row(own, name);
      EXPECT_EQ(strategy["shared_curve_of"], name == "solo" ? json() : json("solo"));
      EXPECT_TRUE(other["shared_curve_of"].is_null());
      for (const char* key : kTimes) EXPECT_EQ(strategy[key], other[key]) << name << " " << key;
      EXPECT_EQ(strategy["reached"], 2) << name;
      for (const char* key :
           {"to_target_s", "quality", "shared_curve_of", "converged_s", "total_s"})
        EXPECT_EQ(row(read, name)[key], strategy[key]) << name << " " << key;
      ASSERT_EQ(strategy["curves"].size(), other["curves"].size());
      for (size_t s = 0; s < 2; ++s) {
        const json &points = strategy["curves"][s]["points"],
                   &own_points = other["curves"][s]["points"];
        ASSERT_EQ(points.size(), own_points.size());
        for (size_t i = 0; i < points.size(); ++i) {
          for (const char* key : {"step", "samples", "time_s", "bytes"})
            EXPECT_EQ(points[i][key], own_points[i][key]) << name << key;
          if (deterministic == "true") {
            EXPECT_EQ(points[i]["quality"], own_points[i]["quality"]) << name;
            EXPECT_EQ(points[i]["loss"], own_points[i]["loss"]) << name;
          } else {
            EXPECT_NEAR(points[i]["quality"], own_points[i]["quality"], 2.0 / 60) << name;
            EXPECT_NEAR(points[i]["loss"], own_points[i]["loss"], 1e-4) << name;
          }
        }
      }
      EXPECT_EQ(strategy["quality"]["final"]["values"].size(), 2u);
    }
  }
}

TEST_F(Compare, SaysWhatIsNotPossibleAndWhatDiverged) {
  write_text(folder_ / "job.toml",
             virtual_job() +
                 "[[compare]]\nname = \"wild\"\noptimizer.lr = 1e38\n"
                 "task.data.noise = 30.0\ntask.epochs = 20\n"
                 "[[compare]]\nname = \"real\"\nstrategy.topology = \"direct\"\n"
                 "cluster.fabric = \"process\"\ncluster.workers = 2\n");
  const Ended ended = run({"--out", "c"});
  EXPECT_EQ(ended.exit_code, kExitDone) << ended.err;
  const json comparison = result("c");
  EXPECT_EQ(row(comparison, "wild")["status"], "diverged");
  EXPECT_TRUE(has(comparison["definitions"]["tasks"], "wild: data ")) << "it changes the task";
  EXPECT_FALSE(has(comparison["definitions"]["tasks"], "real")) << comparison["definitions"];
  EXPECT_EQ(row(comparison, "real")["obtained"], "measured");
  EXPECT_EQ(row(comparison, "real")["status"], "done");
  EXPECT_GT(row(comparison, "real")["total_normalised_s"]["mean"], 0);
  EXPECT_EQ(row(comparison, "ring")["status"], "done");
  EXPECT_EQ(row(comparison, "ring")["reached"], 1);
  std::set<std::string> refused;
  for (const json& entry : comparison["not_possible"]) refused.insert(entry["name"]);
  std::set<std::string> expected = {"direct", "hierarchical", "hogwild"};
  for (const Variant& variant : pipeline_variants())
    if (variant.name != "pipeline-auto") expected.insert(variant.name);
  expected.insert({"early-exit", "pipeline-servers", "tensor"});
  for (const Variant& variant : scheduled_variants()) expected.insert(variant.name);
  EXPECT_EQ(refused, expected) << "a logistic model has one layer, and fewer classes than workers";
  EXPECT_TRUE(has(ended.out, "\n  direct: sums in memory that all workers share")) << ended.out;
  EXPECT_TRUE(has(ended.out, "\nsimulated:\n") && has(ended.out, "\nmeasured:\n")) << ended.out;
  EXPECT_TRUE(has(ended.out, "not all ended well: wild diverged")) << ended.out;
  EXPECT_FALSE(has(ended.out, "convergence: ")) << ended.out;
  EXPECT_GT(comparison["spent"]["joules"], 0);
  EXPECT_TRUE(has(ended.out, "\nconsumed   ")) << ended.out;
  EXPECT_FALSE(has(ended.out, "\033")) << "plain when piped";
  EXPECT_TRUE(has(content_of(folder_ / "c/compare.csv"), "\n\"wild\",1,")) << ended.out;
  std::istringstream lines(ended.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
  // What ended is kept, a diverged run too.
  const Ended again = run({"--out", "c", "--verbose"});
  EXPECT_TRUE(has(again.out, "direct: not possible here: strategy.topology = ")) << again.out;
  EXPECT_TRUE(has(again.out, "convergence: ")) << again.out;
  EXPECT_GT(result("c")["spent"]["wall_s"], comparison["spent"]["wall_s"]) << "it adds up";
  size_t runs = 0;
  for (const json& strategy : comparison["strategies"]) runs += strategy["runs"].size();
  EXPECT_TRUE(has(again.err, fmt::format("{0} of {0} runs are there already", runs))) << again.err;
  EXPECT_EQ(json::parse(run({"--out", "c", "--json", "--quiet"}).out)["strategies"],
            comparison["strategies"]);
}

// What diverges for one diverges for those who share its curve.
TEST_F(Compare, ADivergedCurveIsSharedToo) {
  const Ended ended = run({"--strategies", "solo,ring", "--out", "c", "--set", "optimizer.lr=1e38",
                           "--set", "task.data.noise=30.0", "--set", "task.epochs=20"});
  EXPECT_EQ(ended.exit_code, kExitDone) << ended.err;
  for (const char* name : {"solo", "ring"}) {
    EXPECT_EQ(row(result("c"), name)["status"], "diverged");
    EXPECT_TRUE(has(row(result("c"), name)["error"], "loss")) << ended.out;
    EXPECT_EQ(row(result("c"), name)["reached"], 0);
  }
  EXPECT_TRUE(has(run({"--strategies", "solo,ring", "--out", "c", "--set", "optimizer.lr=1e38",
                       "--set", "task.data.noise=30.0", "--set", "task.epochs=20"})
                      .err,
                  "runs are there already"));
}

// A rate just above what is stable: the error grows from measurement to measurement, and stays
// finite. What is lost for one is lost for those who share its curve, and is not computed again.
TEST_F(Compare, ACollapsedCurveIsSharedToo) {
  const Arguments unstable = {
      "--strategies", "solo,ring",
      "--out",        "c",
      "--set",        "task.data={kind=\"synthetic-linear\", samples=400, features=8}",
      "--set",        "task.model=linear",
      "--set",        "task.target=1000",
      "--set",        "optimizer.lr=0.6",
      "--set",        "task.epochs=3"};
  const Ended ended = run(unstable);
  EXPECT_EQ(ended.exit_code, kExitDone) << ended.err;
  for (const char* name : {"solo", "ring"}) {
    const json strategy = row(result("c"), name);
    EXPECT_EQ(strategy["status"], "collapsed") << strategy.dump();
    EXPECT_TRUE(has(strategy["error"], "at its best")) << strategy["error"];
    EXPECT_EQ(strategy["reached"], 0) << "the target was met, and lost again";
    EXPECT_LT(strategy["quality"]["validation_best"]["mean"],
              strategy["quality"]["validation_final"]["mean"]);
  }
  EXPECT_FALSE(row(result("c"), "ring")["shared_curve_of"].is_null());
  EXPECT_TRUE(has(run(unstable).err, "2 of 2 runs are there already"));
}

// The job is the same, but its file is not: runs on both would stand in one table.
TEST_F(Compare, AFileThatHasChangedIsOtherData) {
  const auto write_data = [&](int shift) {
    std::string table = "a,b,kind\n";
    for (int i = 0; i < 200; ++i)
      table += fmt::format("{},{},{}\n", i, i % 7 + shift, i % 2 ? "x" : "y");
    write_text(folder_ / "data.csv", table);
  };
  const Arguments common = {"--strategies",
                            "solo",
                            "--out",
                            "c",
                            "--quiet",
                            "--set",
                            "task.data={kind=\"csv\", path=\"data.csv\"}"};
  write_data(0);
  EXPECT_EQ(run(common).exit_code, kExitDone);
  EXPECT_EQ(run(common).exit_code, kExitDone);
  write_data(1);
  const Ended changed = run(common);
  EXPECT_EQ(changed.exit_code, kExitBadJob);
  EXPECT_TRUE(has(changed.err, "holds runs on other data")) << changed.err;
}

TEST_F(Compare, RefusesBadUsage) {
  const auto refused = [&](const Arguments& arguments, const std::string& part) {
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.exit_code, kExitBadJob);
    EXPECT_TRUE(has(ended.err, part)) << ended.err;
  };
  refused({"--strategies", "rign"}, "did you mean 'ring'?");
  refused({"--seeds", "x"}, "--seeds x: write --seeds 5");
  refused({"--seeds", "3,3"}, "3 is given twice");
  refused({"--group", "size"}, "--group");
  refused({"--strategies", "direct"}, "nothing is left to compare");
  write_text(folder_ / "other/file", "");
  fs::create_directory(folder_ / "other");
  write_text(folder_ / "other/file", "x");
  refused({"--out", "other"}, "is not the folder of a comparison");
  EXPECT_EQ(content_of(folder_ / "other/file"), "x");
  ASSERT_EQ(run({"--strategies", "ring", "--out", "c", "--quiet"}).exit_code, kExitDone);
  refused({"--strategies", "ring", "--out", "c", "--set", "task.epochs=1"},
          "now  : task.epochs = 1");
  refused({"--strategies", "ring", "--out", "c", "--no-sharing"}, "--no-sharing");
  // More strategies and more seeds are no other comparison.
  ASSERT_EQ(run({"--strategies", "ring,solo", "--seeds", "2", "--out", "c"}).exit_code, kExitDone);
  EXPECT_EQ(result("c")["strategies"].size(), 2u);
}

TEST_F(Compare, DamagedRunsAreNamedAndRunAgain) {
  const Arguments command = {"--strategies", "ring,tree,butterfly", "--out", "c"};
  ASSERT_EQ(run(command).exit_code, kExitDone);
  const json before = result("c");
  const std::string record = content_of(folder_ / "c/runs/tree-seed1/run.json");
  write_text(folder_ / "c/runs/tree-seed1/run.json", record.substr(0, record.size() / 2));
  fs::remove(folder_ / "c/runs/butterfly-seed1/series.csv");
  fs::create_directories(folder_ / "c/runs/half-seed1");
  const Ended strict = run(command + Arguments{"--strict"});
  EXPECT_EQ(strict.exit_code, kExitBadJob);
  EXPECT_TRUE(has(strict.err, "c/runs/butterfly-seed1/series.csv") ||
              has(strict.err, "c/runs/tree-seed1/run.json"))
      << strict.err;
  const Ended ended = run(command);
  EXPECT_EQ(ended.exit_code, kExitDone) << ended.err;
  EXPECT_TRUE(has(ended.err, "c/runs/tree-seed1/run.json: is damaged")) << ended.err;
  EXPECT_TRUE(has(ended.err, "c/runs/butterfly-seed1/series.csv: cannot be read")) << ended.err;
  EXPECT_EQ(figures(result("c")), figures(before));
}

// First a run does not fit, then not even the result.
TEST_F(Compare, AFullDiskIsNamed) {
  // 15,003 parameters take 60 kB; the result takes a fraction of that.
  const Arguments command = {"--strategies",           "ring", "--out", "a", "--set",
                             "task.data.features=5000"};
  const Ended runs = run(command, 40'000);
  EXPECT_EQ(runs.exit_code, kExitDone) << runs.err;
  EXPECT_TRUE(has(runs.out, "parameters.safetensors: cannot be written: File too large"))
      << runs.out;
  EXPECT_EQ(row(result("a"), "ring")["status"], "failed");
  const Ended all = run(command, 4'000);
  EXPECT_EQ(all.exit_code, kExitInternal) << all.err;
  EXPECT_TRUE(has(all.err, "a/compare.json: cannot be written: File too large")) << all.err;
  // With room again the same command goes on.
  EXPECT_EQ(run(command).exit_code, kExitDone);
  EXPECT_EQ(row(result("a"), "ring")["status"], "done");
  for (const auto& entry : fs::directory_iterator(folder_ / "a"))
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
}

// Everyone below a process.
std::vector<pid_t> descendants_of(pid_t pid) {
  std::vector<pid_t> all;
  for (const pid_t child : children_of(pid)) {
    all.push_back(child);
    for (const pid_t below : descendants_of(child)) all.push_back(below);
  }
  return all;
}

size_t finished_runs(const std::string& folder) {
  size_t count = 0;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder + "/runs", failed))
    count += fs::exists(entry.path() / "run.json");
  return count;
}

// Killed at a random moment: nobody is left behind, and at most the runs in flight are lost.
TEST_F(Compare, GoesOnAfterBeingKilled) {
  write_text(folder_ / "job.toml",
             virtual_job("30") +
                 "[[compare]]\nname = \"real\"\ncluster.fabric = \"process\"\n"
                 "cluster.workers = 2\n");
  const Arguments command = {
      "--strategies", "solo,ring,tree,real", "--seeds", "1", "--jobs", "2", "--no-sharing",
      "--out"};
  ASSERT_EQ(run(command + Arguments{"whole", "--quiet"}).exit_code, kExitDone);
  Random random(3, Stream::kTest);
  for (int trial = 0; trial < 3; ++trial) {
    const std::string out = "killed" + std::to_string(trial);
    std::map<std::string, fs::file_time_type> kept;
    Subprocess process(Arguments{"compare", "job.toml"} + command + Arguments{out},
                       {.folder = folder_.path()});
    const size_t wanted = random.below(4);
    ASSERT_TRUE(eventually([&] { return finished_runs(folder_ / out) >= wanted; }, 60));
    std::this_thread::sleep_for(std::chrono::milliseconds(random.below(200)));
    const std::vector<pid_t> below = descendants_of(process.pid());
    process.signal(SIGKILL);
    process.wait(10);
    EXPECT_TRUE(eventually([&] { return std::none_of(below.begin(), below.end(), is_alive); }, 5))
        << "processes are left behind";
    std::error_code none;  // it may not have come that far
    for (const auto& entry : fs::directory_iterator(folder_ / (out + "/runs"), none))
      if (fs::exists(entry.path() / "run.json"))
        kept[entry.path().string()] = fs::last_write_time(entry.path() / "run.json");
    EXPECT_FALSE(fs::exists(folder_ / (out + "/compare.json")) && kept.size() < 4);
    const Ended ended = run(command + Arguments{out});
    EXPECT_EQ(ended.exit_code, kExitDone) << ended.err;
    for (const auto& [path, time] : kept)
      EXPECT_EQ(fs::last_write_time(path + "/run.json"), time) << path << " was run again";
    const json whole = figures(result("whole")), resumed = figures(result(out));
    for (const char* name : {"solo", "ring", "tree"})
      EXPECT_EQ(row(resumed, name), row(whole, name)) << name;
    EXPECT_EQ(row(resumed, "real")["status"], "done");
  }
}

TEST_F(Compare, StopsOnCtrlC) {
  write_text(folder_ / "job.toml", virtual_job("100000"));
  for (const bool group : {true, false}) {
    const std::string out = group ? "group" : "alone";
    Subprocess process({"compare", "job.toml", "--strategies", "solo,ring", "--out", out},
                       {.folder = folder_.path()});
    ASSERT_TRUE(
        eventually([&] { return evaluations_in(folder_ / (out + "/runs/solo-seed1")) > 1; }, 30))
        << process.err();
    const std::vector<pid_t> below = descendants_of(process.pid());
    EXPECT_FALSE(below.empty());
    if (group)
      process.signal_group(SIGINT);
    else
      process.signal(SIGTERM);
    const Ended ended = process.wait(20);
    EXPECT_FALSE(ended.late);
    EXPECT_EQ(ended.exit_code, kExitInterrupted) << ended.err;
    EXPECT_TRUE(eventually([&] { return std::none_of(below.begin(), below.end(), is_alive); }, 5));
  }
}

// A strategy that crashes is one row; the others do not notice, and the next time it may work. (A
// sanitizer would make an exit of a violation of memory.)
TEST_F(Compare, ACrashIsOneRow) {
  write_text(folder_ / "job.toml", virtual_job("400"));
  const Arguments command = {"--strategies", "ring,tree", "--jobs", "1",
                             "--no-sharing", "--out",     "c"};
  Subprocess process(Arguments{"compare", "job.toml"} + command, {.folder = folder_.path()});
  ASSERT_TRUE(eventually([&] { return evaluations_in(folder_ / "c/runs/ring-seed1") > 1; }, 30));
  const std::vector<pid_t> below = children_of(process.pid());
  ASSERT_EQ(below.size(), 1u);
  kill(below[0], SIGABRT);
  const Ended ended = process.wait(120);
  EXPECT_EQ(ended.exit_code, kExitDone) << ended.err;
  EXPECT_EQ(row(result("c"), "ring")["status"], "failed");
  EXPECT_TRUE(has(row(result("c"), "ring")["error"], "signal 6"));
  EXPECT_TRUE(row(result("c"), "ring")["total_s"].is_null());
  EXPECT_EQ(row(result("c"), "tree")["status"], "done");
  EXPECT_TRUE(has(ended.out, "ring: failed: ended by signal 6")) << ended.out;
  ASSERT_EQ(run(command).exit_code, kExitDone);
  EXPECT_EQ(row(result("c"), "ring")["status"], "done");
}

}  // namespace
}  // namespace tutti
