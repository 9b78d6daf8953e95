// The survey: marks follow their rule, every cell leads to runs, and what is missing is said.
#include "testbed/survey.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/described_json.h"
#include "core/error.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;
using nlohmann::json;

TEST(Marks, FollowTheirRule) {
  const std::vector<double> times = {1, 7, 8, 10, 12, 13, 100};  // median 10
  EXPECT_EQ(mark_of(1, times, 0.2), '+');
  EXPECT_EQ(mark_of(8, times, 0.2), '+');  // exactly a fifth less
  EXPECT_EQ(mark_of(8.01, times, 0.2), 'o');
  EXPECT_EQ(mark_of(10, times, 0.2), 'o');
  EXPECT_EQ(mark_of(12.49, times, 0.2), 'o');
  EXPECT_EQ(mark_of(12.5, times, 0.2), '-');
  EXPECT_EQ(mark_of(NAN, times, 0.2), '-');  // the target was missed
  EXPECT_EQ(mark_of(5, {4, 6}, 0.2), 'o');   // the median of an even number
  EXPECT_EQ(mark_of(3, {3}, 0.2), 'o');
  EXPECT_EQ(mark_of(0, {0, 0, 0}, 0.05), 'o');  // nobody makes an error
}

class SurveyTest : public testing::Test {
 protected:
  void SetUp() override {
    write_text(folder_ / "easy.toml", task("easy", "0.7"));
    write_text(folder_ / "hopeless.toml", task("hopeless", "1.0"));
    write_text(folder_ / "absent.toml",
               "name = \"absent\"\n[task]\ndata = { kind = \"csv\", path = \"nowhere.csv\" }\n"
               "model = \"logistic\"\ntarget = 0.9\n");
  }
  static std::string task(const std::string& name, const std::string& target) {
    return "name = \"" + name +
           "\"\n[task]\n"
           "data = { kind = \"synthetic-classes\", samples = 400, features = 8, classes = 4, "
           "noise = 0.5 }\n"
           "model = \"logistic\"\nglobal_batch = 40\nepochs = 3\ntarget = " +
           target + "\n[optimizer]\nkind = \"sgd\"\nlr = 0.1\n";
  }
  Survey run(const std::vector<std::string>& names) {
    SurveyOptions options;
    for (const std::string& name : names) options.tasks.push_back(folder_ / (name + ".toml"));
    options.compare.strategies = {"solo", "ring", "tree", "hierarchical"};
    options.compare.out = folder_ / "survey";
    options.compare.program = TUTTI_PROGRAM;
    std::string where;
    const std::atomic<bool> never{false};
    return survey(options, never, where);
  }
  TemporaryFolder folder_;
};

TEST_F(SurveyTest, EveryCellComesFromRuns) {
  const Survey made = run({"easy", "hopeless", "absent"});
  const json result = json_of(made);
  ASSERT_EQ(result["tasks"].size(), 3u);
  const json& easy = result["tasks"][0];
  for (const char* name : {"solo", "ring", "tree"}) {
    const json& cell = easy["cells"][name];
    EXPECT_EQ(cell["reached"], 1);
    EXPECT_EQ(cell["obtained"], "simulated");
    ASSERT_EQ(cell["runs"].size(), 1u);
    const std::filesystem::path run_folder =
        std::filesystem::path(folder_ / "survey") / "easy" / cell["runs"][0].get<std::string>();
    EXPECT_TRUE(std::filesystem::exists(run_folder / "run.json")) << run_folder;
    EXPECT_EQ(cell["quality_mark"], "o");  // equal strategies learn alike
  }
  // One of them computed the curve for all, and quality is what it measured on test samples.
  size_t computed = 0;
  for (const char* name : {"solo", "ring", "tree"}) {
    const json record =
        json_in(folder_ / ("survey/easy/" + easy["cells"][name]["runs"][0].get<std::string>()) +
                "/run.json");
    if (record["quality"]["final"].is_null()) continue;
    ++computed;
    EXPECT_NE(record["quality"]["final"], record["quality"]["best"]) << "or it tests nothing";
    for (const char* other : {"solo", "ring", "tree"})
      EXPECT_EQ(easy["cells"][other]["quality"], record["quality"]["final"]) << other;
  }
  EXPECT_EQ(computed, 1u);
  EXPECT_EQ(easy["cells"]["solo"]["time_mark"], "+");  // a network of 1 Gbit/s for 36 values
  const json& hopeless = result["tasks"][1];
  EXPECT_TRUE(hopeless["cells"]["ring"]["time_s"].is_null());
  EXPECT_EQ(hopeless["cells"]["ring"]["time_mark"], "-");
  EXPECT_NE(result["tasks"][2]["skipped"].get<std::string>().find("nowhere.csv"),
            std::string::npos);

  const std::string text = survey_tables(made);
  for (const char* words :
       {"Model quality", "Training time", "missed -", "absent is left out", "refused"})
    EXPECT_NE(text.find(words), std::string::npos) << words << " in\n" << text;
  const std::string page = content_of(folder_ / "survey/survey.html");
  // The page draws its links from this; page_rules_test.py follows them in a browser.
  EXPECT_NE(page.find("\"folder\":\"easy\""), std::string::npos);
  EXPECT_NE(page.find("\"runs/solo-seed1\""), std::string::npos);
  EXPECT_GT(result["spent"]["joules"], 0);
  EXPECT_NE(page.find("needs racks"), std::string::npos);  // why hierarchical is refused
  EXPECT_EQ(json_in(folder_ / "survey/survey.json"), result);
  EXPECT_EQ(json_of(described_by<Survey>(result)), result);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "survey/easy/report.html"));
}

TEST_F(SurveyTest, GoesOnWhereItWas) {
  const json first = json_of(run({"easy"}));
  const auto stamp =
      std::filesystem::last_write_time(folder_ / "survey/easy/runs/solo-seed1/run.json");
  const json both = json_of(run({"easy", "hopeless"}));
  EXPECT_EQ(std::filesystem::last_write_time(folder_ / "survey/easy/runs/solo-seed1/run.json"),
            stamp);
  EXPECT_EQ(both["tasks"][0]["cells"], first["tasks"][0]["cells"]);
}

TEST_F(SurveyTest, RefusesUnknownTasksBeforeAnythingStarts) {
  EXPECT_THROW(run({"easy", "unknown"}), ConfigError);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "survey"));
}

}  // namespace
}  // namespace tutti
