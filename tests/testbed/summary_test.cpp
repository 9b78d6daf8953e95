// Comparisons of runs made by hand, whose figures are known.
#include "testbed/summary.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "testbed/table.h"
#include "tests/testbed/summaries.h"

namespace tutti {
namespace {

class Summary : public SummaryTest {};

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
  return cells;
}

TEST_F(Summary, FiguresFollowTheDefinitions) {
  add("solo", {.settings = kSolo, .step_s = 2, .qualities = {0.5, 0.8, 0.9}});
  add("ring1", {.settings = kRing, .step_s = 1.25, .qualities = {0.6, 0.7, 0.9}, .bytes = 4000});
  add("ring2", {.settings = kRing, .seed = 2, .step_s = 1, .qualities = {0.4, 0.85}});
  const json result = written();
  EXPECT_EQ(result["schema"], kComparisonSchema);
  EXPECT_EQ(result["kind"], "comparison");
  EXPECT_EQ(result["task"]["target"], 0.8);
  EXPECT_EQ(result["task"]["metric"], "accuracy");
  ASSERT_EQ(result["strategies"].size(), 2u);
  const json ring = row(result, "ring"), solo = row(result, "solo");

  EXPECT_EQ(ring["seeds"], json({1, 2}));
  EXPECT_EQ(ring["status"], "done");
  EXPECT_EQ(ring["reached"], 2);
  EXPECT_EQ(ring["to_target_s"]["values"], json({37.5, 20}));  // at steps 30 and 20
  EXPECT_EQ(ring["to_target_s"]["mean"], 28.75);
  EXPECT_EQ(ring["to_target_normalised_s"]["mean"], 28.75 * 3 / 4);  // half speed, half computing
  EXPECT_EQ(ring["steps_to_target"]["max"], 30);
  EXPECT_EQ(ring["samples_to_target"]["min"], 2000);
  EXPECT_EQ(ring["quality"]["best"]["mean"], (0.9 + 0.85) / 2);
  EXPECT_EQ(ring["total_s"]["max"], 37.5);
  EXPECT_EQ(ring["bytes_per_node"]["values"], json({4000, 1000}));
  EXPECT_EQ(ring["bytes_total"]["values"], json({6000, 1500}));
  EXPECT_EQ(ring["time_split"]["compute_s"], (37.5 + 20) / 2 / 2);
  EXPECT_EQ(ring["time_split"]["other_s"], (37.5 + 20) / 2 / 4);
  EXPECT_EQ(ring["settings"]["topology"], "ring");
  EXPECT_EQ(ring["energy_j"]["mean"], 7);
  EXPECT_EQ(ring["curves"][1]["points"][1]["quality"], 0.85);
  EXPECT_EQ(ring["series"][0]["loss"].size(), 30u);

  // Every run has 2000 samples; the first to end (ring, seed 2) takes 20 s.
  EXPECT_EQ(ring["quality"]["at_equal_samples"]["values"], json({0.7, 0.85}));
  EXPECT_EQ(solo["quality"]["at_equal_samples"]["mean"], 0.8);
  EXPECT_EQ(solo["quality"]["at_equal_time"]["mean"], 0.5);
  // Seed 1 is then between 12.5 s and 25 s.
  EXPECT_NEAR(ring["quality"]["at_equal_time"]["values"][0], 0.6 + 0.1 * 7.5 / 12.5, 1e-12);

  EXPECT_EQ(solo["samples_per_s"]["mean"], 50);
  EXPECT_EQ(solo["scaling_efficiency"], 1);
  EXPECT_EQ(ring["scaling_efficiency"], (80 + 100) / 2.0 / (2 * 50));
}

TEST_F(Summary, OneSeedThatMissesTheTargetIsNotHidden) {
  for (uint64_t seed = 1; seed <= 5; ++seed)
    add("ring" + std::to_string(seed),
        {.settings = kRing, .seed = seed, .qualities = {0.5, seed == 3 ? 0.7 : 0.9}});
  const json ring = written()["strategies"][0];
  EXPECT_EQ(ring["reached"], 4);
  EXPECT_TRUE(ring["to_target_s"]["mean"].is_null());
  EXPECT_EQ(ring["to_target_s"]["max"], 20);
  EXPECT_TRUE(ring["to_target_s"]["values"][2].is_null());
  const std::string table = comparison_table(summarise_runs(folders_), {});
  EXPECT_NE(table.find("4 of 5"), std::string::npos) << table;
}

TEST_F(Summary, ADivergedRunDoesNotSpoilTheOthers) {
  add("ring", {.settings = kRing, .qualities = {0.5, 0.9}});
  add("tree1", {.settings = kTree, .step_s = 0.1, .qualities = {0.5, 0.9}});
  add("tree2", {.settings = kTree,
                .seed = 2,
                .step_s = 0.1,
                .qualities = {0.3},
                .status = RunStatus::kDiverged});
  const Comparison made = summarise_runs(folders_);
  const json result = json_of(made);
  const json tree = row(result, "tree"), ring = row(result, "ring");
  EXPECT_EQ(tree["status"], "diverged");
  EXPECT_EQ(tree["error"], "the loss is nan at step 3");
  EXPECT_EQ(tree["reached"], 1);
  EXPECT_TRUE(tree["to_target_s"]["mean"].is_null());
  EXPECT_TRUE(tree["total_s"]["values"][1].is_null());
  EXPECT_EQ(tree["total_s"]["mean"], 2);
  // Its 1000 samples are not what the others are judged at.
  EXPECT_EQ(ring["quality"]["at_equal_samples"]["mean"], 0.9);
  EXPECT_EQ(ring["status"], "done");
  const std::string table = comparison_table(made, {.columns = 100, .bold = true});
  EXPECT_NE(table.find("\033[31mtree"), std::string::npos) << table;
}

TEST_F(Summary, EverySeedEndsInItsOwnWay) {
  add("ring1", {.settings = kRing, .qualities = {0.3}, .status = RunStatus::kDiverged});
  add("ring2", {.settings = kRing, .seed = 2, .qualities = {0.5, 0.9}});
  add("tree", {.settings = kTree, .qualities = {0.5, 0.9}});
  const Comparison made = summarise_runs(folders_);
  EXPECT_EQ(row(json_of(made), "ring")["statuses"], json({"diverged", "done"}));
  std::map<std::string, std::string> statuses;  // by seed
  std::istringstream lines(comparison_csv(made));
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> header = cells_of(line);
  const auto column = [&](const std::string& name) {
    return static_cast<size_t>(std::find(header.begin(), header.end(), name) - header.begin());
  };
  while (std::getline(lines, line)) {
    const std::vector<std::string> cells = cells_of(line);
    if (cells.at(column("strategy")) == "\"ring\"")
      statuses[cells.at(column("seed"))] = cells.at(column("status"));
  }
  EXPECT_EQ(statuses,
            (std::map<std::string, std::string>{{"1", "\"diverged\""}, {"2", "\"done\""}}));
  const std::string table = comparison_table(made, {});
  EXPECT_NE(table.find("diverged 1 of 2"), std::string::npos) << table;
  EXPECT_NE(table.find("ring, seed 1: diverged"), std::string::npos) << table;
}

TEST_F(Summary, ConvergenceIsReportedBesideTheTarget) {
  std::vector<double> losses(40, 0.5);
  for (size_t i = 0; i < 10; ++i) losses[i] = 10 - static_cast<double>(i);
  add("ring", {.settings = kRing, .qualities = {0.5, 0.6, 0.7, 0.7}, .losses = losses});
  const json ring = written()["strategies"][0];
  EXPECT_EQ(ring["reached"], 0);
  EXPECT_TRUE(ring["to_target_s"].is_null());
  // Window 4, weight 0.4: after the fall the distance to 0.5 shrinks by 0.6 a step.
  ASSERT_TRUE(ring["converged_steps"].is_object());
  EXPECT_GT(ring["converged_steps"]["mean"], 15);
  EXPECT_LT(ring["converged_steps"]["mean"], 30);
  EXPECT_EQ(ring["converged_s"]["mean"], ring["converged_steps"]["mean"]);
}

TEST_F(Summary, NamesTellStrategiesApart) {
  const Settings four = {"strategy.topology=ring", "cluster.workers=4"};
  add("a", {.settings = kRing, .qualities = {0.5}});
  add("b", {.settings = four, .qualities = {0.5}});
  add("c", {.settings = kTree, .qualities = {0.5}});
  add("d", {.settings = kTree + Settings{"name=mine"}, .qualities = {0.5}});
  add("e", {.settings = kTree + Settings{"name=mine2", "optimizer.lr=0.5"}, .qualities = {0.5}});
  const json result = written();
  std::vector<std::string> names;
  for (const json& strategy : result["strategies"]) names.push_back(strategy["name"]);
  EXPECT_EQ(names, (std::vector<std::string>{"ring virtual x2", "ring virtual x4", "tree", "mine",
                                             "mine2"}));
}

TEST_F(Summary, RunsOfOtherTasksAreRefused) {
  const auto said = [&]() -> std::string {
    try {
      summarise_runs(folders_);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  const std::string first = add("a", {.settings = kRing, .qualities = {0.5}});
  const std::string other = add("b", {.settings = kTree, .qualities = {0.5}});
  EXPECT_EQ(said(), "");
  // The settings are equal, but the file that they name has changed.
  const auto with_data = [](const std::string& run, const char* data) {
    json record = json::parse(read_file(run + "/run.json"));
    record["task"] = {{"data", data}, {"target", 0.8}};
    write_file(run + "/run.json", record.dump());
  };
  with_data(first, "1234");
  with_data(other, "1234");
  EXPECT_EQ(said(), "");
  EXPECT_EQ(written()["task"]["identity"]["data"], "1234") << "for other reports";
  with_data(other, "5678");
  EXPECT_NE(
      said().find(other + ": is a run of another task than " + first + ": data 5678 (there 1234)"),
      std::string::npos)
      << said();
  // Records that do not identify their task are compared by their settings.
  folders_.pop_back();
  add("c", {.settings = kTree + Settings{"task.data.limit=64"}, .qualities = {0.5}});
  EXPECT_NE(said().find("limit 64"), std::string::npos) << said();
}

TEST_F(Summary, CsvHasALinePerStrategyAndSeed) {
  add("ring1", {.settings = kRing, .qualities = {0.5, 0.9}});
  add("ring2", {.settings = kRing, .seed = 2, .qualities = {0.5, 0.6}});
  const std::string csv = comparison_csv(summarise_runs(folders_));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
  EXPECT_NE(csv.find("\n\"job\",1,\"allreduce\",\"peer-to-peer\",\"synchronous\",\"virtual\",2,"
                     "\"simulated\",\"done\",0.9,"),
            std::string::npos)
      << csv;
}

// A bound that never holds anybody back makes the same run as no bound. Measured runs that look
// alike do so by chance.
TEST_F(Summary, SaysWhoTookTheRunOfWhom) {
  const Settings servers = {"strategy.kind=parameter_server", "cluster.workers=2"};
  add("none", {.settings = servers + Settings{"strategy.consistency=asp", "name=none"},
               .qualities = {0.5, 0.9}});
  add("bound", {.settings = servers + Settings{"strategy.consistency=ssp", "name=bound"},
                .qualities = {0.5, 0.9}});
  add("slower", {.settings = servers + Settings{"strategy.consistency=bsp", "name=slower"},
                 .step_s = 2,
                 .qualities = {0.5, 0.9}});
  const Comparison made = summarise_runs(folders_);
  const json result = json_of(made);
  EXPECT_TRUE(row(result, "none")["same_run_as"].is_null());
  EXPECT_EQ(row(result, "bound")["same_run_as"], "none");
  EXPECT_TRUE(row(result, "slower")["same_run_as"].is_null());
  const std::string table = comparison_table(made, {.columns = 100});
  EXPECT_NE(table.find("bound took exactly the run of none: its bound never held anybody back"),
            std::string::npos)
      << table;
  folders_.clear();
  const Settings real = {"cluster.fabric=process"};
  add("one", {.settings = kRing + real, .qualities = {0.5, 0.9}});
  add("other", {.settings = kTree + real, .qualities = {0.5, 0.9}});
  for (const json& each : written()["strategies"]) EXPECT_TRUE(each["same_run_as"].is_null());
}

TEST_F(Summary, NamesThePlanOfEach) {
  const std::string plan = "8 servers, on the workers' machines";
  const std::string path = add("ps", {.settings = kRing, .qualities = {0.5, 0.9}});
  json record = json::parse(read_file(path + "/run.json"));
  record["plan"] = plan;
  record["machines"] = 8;
  write_file(path + "/run.json", record.dump());
  const Comparison made = summarise_runs(folders_);
  const json result = json_of(made);
  EXPECT_EQ(result["strategies"][0]["plan"], plan);
  EXPECT_EQ(result["strategies"][0]["machines"], 8);
  EXPECT_EQ(json_of(comparison_of(result, "compare.json")), result);
  for (const size_t columns : {80u, 200u})  // the plan is shown below the table, or in it
    EXPECT_NE(comparison_table(made, {.columns = columns}).find(plan), std::string::npos);
}

// Whatever the width of the terminal, no line is wider and the strategies are there.
TEST_F(Summary, TheTableFits) {
  add("ring", {.settings = kRing, .qualities = {0.5, 0.9}});
  add("tree", {.settings = kTree, .qualities = {0.5, 0.7}});
  add("solo", {.settings = kSolo, .qualities = {0.5, 0.9}});
  add("long", {.settings = kTree + Settings{"name=a-name-that-is-very-long-for-a-table",
                                            "optimizer.lr=0.7"},
               .qualities = {0.5, 0.95}});
  const Comparison made = summarise_runs(folders_);
  for (const size_t columns : {200ul, 100ul, 80ul, 60ul, 40ul, 30ul}) {
    const std::string table = comparison_table(made, {.columns = columns});
    std::istringstream lines(table);
    const std::string longest = "a-name-that-is-very-long-for-a-table";
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(line.size(), std::max(columns, longest.size())) << line;
    for (const std::string& name : {std::string("ring"), std::string("solo"), longest})
      EXPECT_NE(table.find(std::string("\n") + name), std::string::npos) << table;
    EXPECT_NE(table.find("missed"), std::string::npos) << table;
    EXPECT_NE(table.find('*'), std::string::npos) << table;
    EXPECT_EQ(table.find('\033'), std::string::npos);
  }
  const std::string bold = comparison_table(made, {.columns = 100, .bold = true});
  EXPECT_NE(bold.find("\033[1m"), std::string::npos);
  EXPECT_EQ(bold.find("\033[31m"), std::string::npos) << "nothing failed";
  const std::string grouped = comparison_table(made, {.group = "structure"});
  EXPECT_LT(grouped.find("-- structure: peer-to-peer"), grouped.find("-- structure: single node"));
  const std::string by_work = comparison_table(made, {.group = "computation"});
  EXPECT_NE(by_work.find("-- computation: a share of the batch"), std::string::npos) << by_work;
  // A comparison of an older version knows less.
  Comparison older = made;
  for (ComparedStrategy& each : older.strategies) each.taxonomy.computation.clear();
  EXPECT_NE(comparison_table(older, {.group = "computation"}).find("-- computation: ?"),
            std::string::npos);
}

}  // namespace
}  // namespace tutti
