// What the report is made from: comparisons and runs, one or several, whole or damaged.
#include "testbed/report_input.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/described_json.h"
#include "core/error.h"
#include "tests/support/programs.h"
#include "tests/testbed/comparison.h"

namespace tutti {
namespace {

using nlohmann::json;
using namespace testing_support;

class ReportInput : public testing::Test {
 protected:
  std::string write(const std::string& name, const json& comparison) {
    std::filesystem::create_directories(folder_ / name);
    write_text(folder_ / (name + "/compare.json"), comparison.dump());
    return folder_ / name;
  }
  Comparison read(const std::vector<std::string>& paths) {
    return read_comparisons(paths, [this](const std::vector<std::string>& folders) {
      summarised_ = folders;
      Comparison runs = read_back(small_comparison());
      runs.name = "runs";
      return runs;
    });
  }
  std::string refusal(const std::vector<std::string>& paths) {
    try {
      read(paths);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
  TemporaryFolder folder_;
  std::vector<std::string> summarised_;
};

std::vector<std::string> names(const Comparison& comparison) {
  std::vector<std::string> all;
  for (const ComparedStrategy& strategy : comparison.strategies) all.push_back(strategy.name);
  return all;
}

TEST_F(ReportInput, AFolderAndItsFileAreTheSame) {
  const std::string folder = write("a", small_comparison());
  const json whole = json_of(read_back(small_comparison()));
  EXPECT_EQ(json_of(read({folder})), whole);
  EXPECT_EQ(json_of(read({folder + "/compare.json"})), whole);
  // What it says stays as it is, however often it is read and written.
  EXPECT_EQ(json_of(read_back(whole)), whole);
  for (const char* key : {"to_target_s", "series", "timeline", "links"})
    EXPECT_EQ(whole["strategies"][0][key], small_comparison()["strategies"][0][key]) << key;
}

TEST_F(ReportInput, SeveralBecomeOneWithNamesApartAndTheirOrigin) {
  json other = small_comparison();
  other["name"] = "other machine";
  other["machine"] = {{"cpu", "B"}};
  const std::string a = write("a", small_comparison()), b = write("b", other);
  const Comparison both = read({a, b, b});
  EXPECT_EQ(names(both), (std::vector<std::string>{"ring", "ring (other machine)", "ring (2)"}));
  ASSERT_EQ(both.sources.size(), 3u);
  ASSERT_TRUE(both.sources[1].machine);
  EXPECT_EQ(both.sources[1].machine->cpu, "B");
}

TEST_F(ReportInput, OtherTasksAreRefused) {
  json other = small_comparison();
  other["task"]["target"] = 0.9;
  const std::string message = refusal({write("a", small_comparison()), write("b", other)});
  EXPECT_TRUE(has(message, "b/compare.json: its task has target = 0.9, the first one's 0.8"))
      << message;
  // The settings are equal, but the file that they name has changed.
  json first = small_comparison();
  other = small_comparison();
  first["task"]["identity"] = {{"data", "1234"}};
  other["task"]["identity"] = {{"data", "5678"}};
  EXPECT_TRUE(has(refusal({write("a", first), write("b", other)}),
                  "is of another task than the first one: data 5678 (there 1234)"));
  EXPECT_EQ(refusal({write("a", first), write("b", first)}), "accepted");
}

TEST_F(ReportInput, RunsAreSummarisedTogether) {
  std::vector<std::string> runs;
  for (const char* name : {"one", "two"}) {
    std::filesystem::create_directories(folder_ / name);
    write_text(folder_ / (std::string(name) + "/run.json"), "{}");
    runs.push_back(folder_ / name);
  }
  EXPECT_EQ(read(runs).name, "runs");
  EXPECT_EQ(summarised_, runs);
  EXPECT_EQ(names(read({write("a", small_comparison()), runs[0]})).size(), 2u);
}

TEST_F(ReportInput, WhatIsMissingOrDamagedIsNamed) {
  EXPECT_TRUE(has(refusal({folder_ / "none"}), "none: does not exist"));
  std::filesystem::create_directories(folder_ / "empty");
  EXPECT_TRUE(has(refusal({folder_ / "empty"}), "empty: holds neither compare.json nor run.json"));
  write_text(folder_ / "cut.json", small_comparison().dump().substr(0, 700));
  EXPECT_TRUE(has(refusal({folder_ / "cut.json"}), "cut.json: is not complete JSON"));
  write_text(folder_ / "other.json", "{\"schema\": 1}");
  EXPECT_TRUE(has(refusal({folder_ / "other.json"}), "other.json: is not a comparison"));
}

}  // namespace
}  // namespace tutti
