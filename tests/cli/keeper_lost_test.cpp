// Killing whoever keeps the record of a run, where the run survives it: the next one goes on with
// the record, and what is in the folder at the end adds up.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <sstream>

#include "fabric/outcome.h"
#include "tests/support/proc.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;
using nlohmann::json;

// 2,800 of the samples are trained on.
std::string lasting_job() {
  return "name = \"lasting\"\n"
         "[task]\n"
         "data = { kind = \"synthetic-classes\", samples = 4000, features = 40, classes = 5, "
         "test = 0.1, validation = 0.2 }\n"
         "model = { kind = \"mlp\", hidden = [200] }\n"
         "global_batch = 100\n"
         "epochs = 80\n"
         "eval_every = 0.25\n"
         "[optimizer]\n"
         "kind = \"sgd\"\n"
         "lr = 0.01\n"
         "[cluster]\n"
         "workers = 4\n"
         "timeout = 60\n";
}

struct Survivor {
  std::string name;
  Arguments settings;
  bool plans_steps = true;  // a step without the late ones is not a whole batch
  // Workers end by what the others have probably done: far off where one is not scheduled.
  bool estimates = false;
};

Arguments with_settings(Arguments arguments, const Arguments& settings) {
  for (const std::string& setting : settings) arguments = arguments + Arguments{"--set", setting};
  return arguments;
}

std::vector<std::vector<double>> rows_of(const std::string& path) {
  std::istringstream lines(content_of(path));
  std::string line;
  std::getline(lines, line);
  std::vector<std::vector<double>> rows;
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    rows.emplace_back();
    for (std::string field; std::getline(fields, field, ',');)
      rows.back().push_back(std::strtod(field.c_str(), nullptr));
  }
  return rows;
}

// How much of a run passes unseen, and how much is done, is certain in virtual time alone: real
// nodes may not be scheduled for as long as others take to end.
enum class Clocks { kVirtual, kReal };

// Columns of both files.
constexpr size_t kStep = 0, kTime = 1, kSamplesOfStep = 4, kSamplesMeasured = 3, kEpoch = 2;

class KeeperLost : public testing::TestWithParam<Survivor> {
 protected:
  KeeperLost() { write_text(folder_ / "job.toml", lasting_job()); }

  Ended tutti(const Arguments& arguments) {
    return run_tutti(arguments, {.folder = folder_.path()}, kLate_s);
  }

  void expect_series_goes_on(const json& run, double steps_planned, Clocks clocks) {
    const auto rows = rows_of(folder_ / "run/series.csv");
    ASSERT_GT(static_cast<double>(rows.size()), std::min(100.0, 0.5 * steps_planned));
    double longest_s = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      ASSERT_EQ(rows[i].size(), 5u) << "row " << i;
      if (GetParam().plans_steps) {
        EXPECT_LE(rows[i][kStep], steps_planned) << "row " << i;
      }
      if (i == 0) continue;
      for (const size_t column : {kStep, kTime, kSamplesOfStep})
        EXPECT_GE(rows[i][column], rows[i - 1][column]) << "row " << i << ", column " << column;
      longest_s = std::max(longest_s, rows[i][kTime] - rows[i - 1][kTime]);
    }
    if (clocks == Clocks::kReal) return;
    // Nobody writes before the loss is noticed.
    EXPECT_LT(longest_s, 0.5 * rows.back()[kTime]);
    EXPECT_GE(rows.back()[kSamplesOfStep], 0.9 * run["samples"].get<double>());
  }

  void expect_measurements_go_on(const json& run, Clocks clocks) {
    const auto rows = rows_of(folder_ / "run/evaluations.csv");
    ASSERT_EQ(rows.size(), run["evaluations"].size());
    ASSERT_GT(rows.size(), 10u);
    for (size_t i = 0; i < rows.size(); ++i) {
      ASSERT_EQ(rows[i].size(), 6u) << "row " << i;
      EXPECT_EQ(rows[i][kSamplesMeasured], run["evaluations"][i]["samples"]) << "row " << i;
      if (i == 0) continue;
      EXPECT_GT(rows[i][kSamplesMeasured], rows[i - 1][kSamplesMeasured]) << "row " << i;
      EXPECT_GE(rows[i][kTime], rows[i - 1][kTime]) << "row " << i;
      if (clocks == Clocks::kReal) continue;
      EXPECT_LT(rows[i][kEpoch] - rows[i - 1][kEpoch], 0.5 * rows.back()[kEpoch]) << "row " << i;
    }
    EXPECT_EQ(rows.back()[kSamplesMeasured], run["samples"]);
  }

  void expect_books_add_up(Clocks clocks) {
    const json run = json_in(folder_ / "run/run.json"), plan = json_in(folder_ / "run/plan.json");
    ASSERT_TRUE(run.is_object() && plan.is_object());
    EXPECT_EQ(run["status"], "done");
    EXPECT_EQ(run["lost"], json({0, 1}));
    const auto steps = plan["steps"].get<double>();
    if (GetParam().plans_steps) {
      EXPECT_LE(run["steps"].get<double>(), steps);
    }
    if (clocks == Clocks::kVirtual || !GetParam().estimates) {
      EXPECT_GE(run["steps"].get<double>(), 0.99 * steps);
      EXPECT_GE(run["samples"].get<double>(), 80 * 2800);
    }
    expect_series_goes_on(run, steps, clocks);
    expect_measurements_go_on(run, clocks);
    const Ended report = tutti({"report", "run", "--out", "page.html"});
    EXPECT_EQ(report.exit_code, kExitDone) << report.err;
    EXPECT_FALSE(has(report.err, "missing")) << report.err;
  }

  TemporaryFolder folder_;
};

TEST_P(KeeperLost, IsNoLossInTheSimulation) {
  const Arguments settings =
      GetParam().settings + Arguments{"cluster.fabric=virtual", "cluster.detect=0.01"};
  ASSERT_EQ(tutti(with_settings({"train", "job.toml", "--out", "whole"}, settings)).exit_code,
            kExitDone);
  const double whole_s = json_in(folder_ / "whole/run.json")["time"]["total_s"];
  const std::string faults = fmt::format(
      "cluster.faults=[{{kind=\"crash\", at={}, nodes=[0]}}, "
      "{{kind=\"crash\", at={}, nodes=[1]}}]",
      0.3 * whole_s, 0.6 * whole_s);
  const Ended ended =
      tutti(with_settings({"train", "job.toml", "--out", "run"}, settings + Arguments{faults}));
  ASSERT_EQ(ended.exit_code, kExitDone) << ended.err;
  expect_books_add_up(Clocks::kVirtual);
  const double total_s = json_in(folder_ / "run/run.json")["time"]["total_s"];
  EXPECT_GT(rows_of(folder_ / "run/series.csv").back()[kTime], 0.9 * total_s);
}

TEST_P(KeeperLost, IsNoLossAmongProcesses) {
  // Nobody waits for a loss to be noticed: the run has to be much longer than that takes.
  const Arguments longer = GetParam().estimates ? Arguments{"task.epochs=240"} : Arguments{};
  Subprocess process(
      with_settings({"train", "job.toml", "--out", "run", "--quiet"}, GetParam().settings + longer),
      {.folder = folder_.path()});
  const auto measured = [&](size_t times) {
    return eventually([&] { return evaluations_in(folder_ / "run") >= times; }, 60);
  };
  ASSERT_TRUE(measured(1)) << process.err();
  const std::vector<pid_t> nodes = children_of(process.pid());
  ASSERT_GE(nodes.size(), 4u);
  for (const size_t keeper : {size_t{0}, size_t{1}}) {
    const size_t before = evaluations_in(folder_ / "run");
    kill(nodes[keeper], SIGKILL);
    ASSERT_TRUE(measured(before + 4)) << "nothing was written after rank " << keeper;
  }
  const Ended ended = process.wait(kLate_s);
  ASSERT_EQ(ended.exit_code, kExitDone) << ended.err;
  expect_books_add_up(Clocks::kReal);
}

// Says so before a run, too.
TEST_P(KeeperLost, IsInThePlan) {
  const Ended ended = tutti(with_settings({"check", "job.toml", "--json"}, GetParam().settings));
  ASSERT_EQ(ended.exit_code, kExitDone) << ended.err;
  EXPECT_EQ(json::parse(ended.out)["planned"]["nodes"][0]["may_be_lost"], true) << ended.out;
}

const char* const kServers = "strategy.kind=parameter_server";
INSTANTIATE_TEST_SUITE_P(
    All, KeeperLost,
    testing::Values(Survivor{"gossip", {"strategy.kind=gossip", "strategy.mode=async"}, true, true},
                    Survivor{"elastic_averaging",
                             {"strategy.kind=elastic_averaging", "strategy.mode=async"},
                             true,
                             true},
                    Survivor{"asp", {kServers, "strategy.consistency=asp"}},
                    Survivor{"bsp", {kServers, "strategy.consistency=bsp"}},
                    Survivor{"backup", {kServers, "strategy.consistency=backup"}, false},
                    Survivor{"replicas",
                             {kServers, "strategy.consistency=asp", "strategy.servers=2",
                              "strategy.replicas=1"}},
                    Survivor{"federated", {"strategy.kind=federated_averaging"}}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace tutti
