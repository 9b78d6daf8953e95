// Tables show the quality at the end and at best, each under its own name, and a run that shares a
// learning curve shows that curve by its own clock.
#include <gtest/gtest.h>

#include <sstream>

#include "core/described_json.h"
#include "core/error.h"
#include "testbed/run_files.h"
#include "testbed/summary.h"
#include "testbed/table.h"
#include "tests/support/jobs.h"
#include "tests/testbed/runs.h"

namespace tutti {
namespace {

using namespace testing_support;
using nlohmann::json;

const Settings kByRing = {"strategy.topology=ring", "cluster.workers=2"};
const Settings kByTree = {"strategy.topology=tree", "cluster.workers=2"};
const Settings kAlone = {"strategy.kind=solo", "cluster.workers=1"};

// The cell of a table whose last letter stands under the last letter of the title.
std::string cell_under(const std::string& table, const std::string& title,
                       const std::string& name) {
  std::istringstream lines(table);
  size_t end = std::string::npos;
  for (std::string line; std::getline(lines, line);) {
    if (const size_t at = line.find(title); at != std::string::npos && end == std::string::npos)
      end = at + title.size();
    if (end == std::string::npos || !line.starts_with(name + " ")) continue;
    const std::string left = line.substr(0, end);
    return left.substr(left.rfind(' ') + 1);
  }
  return "no such cell";
}

class ShownQuality : public testing::Test {
 protected:
  std::string add(const std::string& name, const MadeRun& made) {
    folders_.push_back(make_run(folder_ / name, made));
    return folders_.back();
  }
  TemporaryFolder folder_;
  std::vector<std::string> folders_;
};

// The issue: 0.6088 was shown of a run that ended at 0.104. That run was also the fastest.
TEST_F(ShownQuality, IsThatOfTheEndAndTheBestIsNamed) {
  add("ring", {.settings = kByRing,
               .step_s = 0.1,
               .qualities = {0.3, 0.875, 0.125},
               .status = RunStatus::kCollapsed,
               .test_quality = 0.11});
  add("solo",
      {.settings = kAlone, .step_s = 2, .qualities = {0.5, 0.85, 0.81}, .test_quality = 0.82});
  add("tree",
      {.settings = kByTree, .step_s = 2, .qualities = {0.5, 0.99, 0.8}, .test_quality = 0.79});
  const Comparison made = summarise_runs(folders_);
  const json result = json_of(made);
  const json ring = result["strategies"][0]["quality"];
  EXPECT_EQ(ring["validation_best"]["mean"], 0.875);
  EXPECT_EQ(ring["validation_final"]["mean"], 0.125);
  EXPECT_EQ(ring["test_final"]["mean"], 0.11);
  EXPECT_EQ(result["strategies"][0]["reached"], 0) << "what it reached is lost again";

  const std::string table = comparison_table(made, {.columns = 200});
  EXPECT_EQ(cell_under(table, "final test", "ring"), "0.11") << table;
  EXPECT_EQ(cell_under(table, "final val", "ring"), "0.125") << table;
  EXPECT_EQ(cell_under(table, "best val", "ring"), "0.875") << table;
  EXPECT_NE(table.find("\nring: collapsed: "), std::string::npos) << table;
  // Of two that are as fast, the better at the end comes first; what collapsed comes last.
  EXPECT_LT(table.find("\nsolo "), table.find("\ntree ")) << table;
  EXPECT_LT(table.find("\ntree "), table.find("\nring ")) << table;

  const std::string csv = comparison_csv(made);
  EXPECT_NE(csv.find("validation_best,validation_final,test_final"), std::string::npos) << csv;
  EXPECT_NE(csv.find("0.875,0.125,0.11,"), std::string::npos) << csv;
}

// The follower simulated its own messages, twice as fast as the leader, and computed no quality.
TEST_F(ShownQuality, OfASharedCurveIsTheLeadersAtTheFollowersTimes) {
  const std::string follower =
      add("follower", {.settings = kByRing + Settings{"cluster.cost_only=true"},
                       .step_s = 1,
                       .qualities = {0, 0, 0}});
  note_shared_curve(follower, "leader");
  EXPECT_EQ(read_run(follower).curve_of, "") << "the leader is not there";

  const auto lead = [&](const std::vector<double>& qualities, RunStatus status) {
    make_run(folder_ / "leader", {.settings = kAlone,
                                  .step_s = 2,
                                  .qualities = qualities,
                                  .status = status,
                                  .test_quality = 0.7});
    return json_of(read_run(follower).record);
  };
  const json done = lead({0.5, 0.85, 0.9}, RunStatus::kDone);
  EXPECT_EQ(done["status"], "done");
  EXPECT_EQ(done["evaluations"][1]["quality"], 0.85);
  EXPECT_EQ(done["time"]["to_target_s"], 20) << "its own clock, not the leader's 40 s";
  EXPECT_EQ(done["quality"]["final"], 0.7);
  const json collapsed = lead({0.5, 0.85, 0.1}, RunStatus::kCollapsed);
  EXPECT_EQ(collapsed["status"], "collapsed");
  EXPECT_TRUE(collapsed["time"]["to_target_s"].is_null()) << "what was reached is lost again";
  EXPECT_TRUE(lead({0.5, 0.6, 0.7}, RunStatus::kDone)["time"]["to_target_s"].is_null());
}

// The note is a file that anybody may have written: it names a folder beside this one, or nothing.
TEST_F(ShownQuality, OfACurveElsewhereIsRefused) {
  const std::string run = add("run", {.settings = kByRing, .qualities = {0.5, 0.9}});
  add("other", {.settings = kByTree, .qualities = {0.5, 0.9}});
  for (const std::string& name : {std::string("../other"), std::string(".."), std::string("a/b"),
                                  std::string(), std::string(300, 'x'), std::string("a\0b", 3)}) {
    write_file(run + "/shared_curve", name + "\n");
    try {
      read_run(run);
      ADD_FAILURE() << "it followed \"" << name << "\"";
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find("shared_curve: is damaged"), std::string::npos)
          << error.what();
    }
  }
}

// Reading data is part of the time on real machines. Series of older versions leave it out.
TEST_F(ShownQuality, CountsTheReadingOfDataOnce) {
  const std::string run =
      add("run", {.settings = kByRing + Settings{"cluster.fabric=process"}, .qualities = {0.5}});
  json record = json::parse(read_file(run + "/run.json"));
  record["time"]["data_s"] = 5;
  write_file(run + "/run.json", record.dump());
  EXPECT_EQ(read_run(run).series.time_s.front(), 1);
  record["time"].erase("series_count_data");
  write_file(run + "/run.json", record.dump());
  EXPECT_EQ(read_run(run).series.time_s.front(), 6);
}

}  // namespace
}  // namespace tutti
