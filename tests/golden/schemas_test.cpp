// Records of every schema that there was (tests/golden/kept/schemas) are read, and what a newer
// version wrote is refused by a message that names both versions and what to do.
#include <gtest/gtest.h>

#include <filesystem>

#include "fabric/outcome.h"
#include "jobs/recorded_run.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;
using nlohmann::json;

class Schemas : public testing::Test {
 protected:
  Schemas() {
    std::filesystem::copy(TUTTI_SOURCE "/tests/golden/kept", folder_.path(),
                          std::filesystem::copy_options::recursive);
  }
  Ended run(const Arguments& arguments) {
    return run_tutti(arguments, {.folder = folder_.path()}, kLate_s);
  }
  // Changes the schema of a file, and expects that `arguments`, which read it, are refused.
  void expect_newer_refused(const std::string& file, const Arguments& arguments) {
    json record = json_in(folder_ / file);
    record["schema"] = 99;
    record["versions"]["tutti"] = "7.8.9";
    write_text(folder_ / file, record.dump());
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.exit_code, kExitBadJob) << ended.out;
    for (const char* part : {"has schema 99 of tutti 7.8.9", "this program (tutti ", "reads schema",
                             "the newer version that wrote it, or "})
      EXPECT_TRUE(has(ended.err, part)) << ended.err << " lacks: " << part;
    EXPECT_TRUE(has(ended.err, file.substr(file.rfind('/') + 1))) << ended.err;
  }
  TemporaryFolder folder_;
};

TEST_F(Schemas, EveryOneOfRunsIsKept) {
  for (int64_t schema = 1; schema <= kRunSchema; ++schema)
    EXPECT_TRUE(std::filesystem::exists(folder_ / ("schemas/run-" + std::to_string(schema))))
        << "keep a run of schema " << schema << " in tests/golden/kept/schemas";
}

TEST_F(Schemas, RunsOfEveryOneAreShown) {
  const Ended ended = run({"show", "schemas/run-1", "schemas/run-2", "--json"});
  ASSERT_EQ(ended.exit_code, kExitDone) << ended.err;
  const json shown = json::parse(ended.out, nullptr, false);
  for (const json& record : shown) {
    EXPECT_EQ(record["quality"]["final"], 0.9375);
    EXPECT_EQ(record["quality"]["higher_is_better"], true);
    EXPECT_EQ(record["time"]["to_target_s"], 0.029357786799999997);
    EXPECT_EQ(record["nodes"][0]["role"], "worker");
    EXPECT_EQ(record["evaluations"].size(), 3u);
  }
  // What schema 1 did not have is not known, and not zero.
  EXPECT_TRUE(shown[0]["co2e"]["grams"].is_null());
  EXPECT_TRUE(shown[0]["samples"].is_null());
  EXPECT_EQ(shown[1]["samples"], 390);
}

TEST_F(Schemas, AnErrorOfSchema1IsBetterWhenItIsSmaller) {
  json record = json_in(folder_ / "schemas/run-1/run.json");
  record["quality"]["metric"] = "mse";
  write_text(folder_ / "schemas/run-1/run.json", record.dump());
  const RecordedRun read = read_recorded_run(folder_ / "schemas/run-1/run.json");
  EXPECT_FALSE(read.quality.higher_is_better);
}

TEST_F(Schemas, RunsAndComparisonsOfEveryOneAreReported) {
  for (const char* path : {"schemas/run-1", "schemas/run-2", "schemas/compare-1.json"}) {
    const Ended ended = run({"report", path, "--out", "page.html", "--csv", "rows.csv"});
    EXPECT_EQ(ended.exit_code, kExitDone) << path << ": " << ended.err;
    EXPECT_TRUE(has(content_of(folder_ / "rows.csv"), "solo")) << path;
  }
  const Ended both = run({"report", "schemas/run-1", "schemas/run-2", "--out", "page.html"});
  EXPECT_EQ(both.exit_code, kExitDone) << both.err;
}

TEST_F(Schemas, JobsOfEveryOneAreRepeated) {
  for (const char* folder : {"schemas/run-1", "schemas/run-2"}) {
    const Ended ended =
        run({"train", std::string(folder) + "/job.toml", "--out", "again", "--quiet"});
    EXPECT_EQ(ended.exit_code, kExitDone) << ended.err;
    std::filesystem::remove_all(folder_ / "again");
  }
}

TEST_F(Schemas, NewerOnesAreRefusedNamingVersions) {
  expect_newer_refused("schemas/run-2/run.json", {"show", "schemas/run-2"});
  expect_newer_refused("run/data.json", {"predict", "run"});
  expect_newer_refused("schemas/compare-1.json", {"report", "schemas/compare-1.json"});
  expect_newer_refused("comparison/comparison.json",
                       {"compare", "compared.toml", "--out", "comparison", "--strategies",
                        "solo,ring,tree,ps-ssp3,two-steps"});
}

}  // namespace
}  // namespace tutti
