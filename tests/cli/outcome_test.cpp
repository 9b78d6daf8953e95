// Exit code 3: a run whose loss is not a number any more says so, on one worker and on several.
#include <gtest/gtest.h>

#include "fabric/outcome.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;

TEST(Diverged, IsAnOutcomeOfItsOwn) {
  const TemporaryFolder folder;
  write_text(folder / "job.toml", small_job());
  const Arguments linear = {"--set", "task.data={kind=\"synthetic-linear\", samples=300}", "--set",
                            "task.model=linear"};
  const Arguments logistic = {"--set", "task.data.noise=30"};
  for (const bool classify : {false, true})
    for (const std::string fabric : {"process", "virtual"})
      for (const std::string workers : {"1", "2"}) {
        // Exact sums must not hide it: each way once on each fabric and number of workers.
        const bool exact = classify == (fabric == "process");
        const std::string out = fabric + workers + (classify ? "logistic" : "linear");
        const Ended ended =
            run_tutti(Arguments{"train", "job.toml", "--json", "--quiet", "--out", out, "--set",
                                "cluster.fabric=" + fabric, "--set", "cluster.workers=" + workers,
                                "--set", classify ? "optimizer.lr=1e38" : "optimizer.lr=1e10",
                                "--set", "task.epochs=20", "--set",
                                exact ? "task.deterministic=true" : "task.deterministic=false"} +
                          (classify ? logistic : linear),
                      {.folder = folder.path()});
        EXPECT_EQ(ended.exit_code, kExitDiverged) << out << ": " << ended.err;
        EXPECT_TRUE(has(ended.err, "tutti: diverged: ")) << ended.err;
        const auto record = nlohmann::json::parse(ended.out, nullptr, false);
        ASSERT_TRUE(record.is_object()) << ended.out;
        EXPECT_EQ(record["status"], "diverged");
        EXPECT_EQ(record["exit_code"], kExitDiverged);
        EXPECT_EQ(json_in(folder / (out + "/run.json")), record);
      }
}

// The summary goes to standard output and the reason to standard error: a terminal shows both.
TEST(Diverged, IsSaidOnce) {
  const TemporaryFolder folder;
  write_text(folder / "job.toml", small_job());
  const Ended ended =
      run_tutti({"train", "job.toml", "--quiet", "--out", "run", "--set", "optimizer.lr=1e38",
                 "--set", "task.data.noise=30", "--set", "task.epochs=20"},
                {.folder = folder.path()});
  EXPECT_EQ(ended.exit_code, kExitDiverged) << ended.err;
  const std::string reason = json_in(folder / "run/run.json")["error"], all = ended.out + ended.err;
  ASSERT_FALSE(reason.empty());
  EXPECT_TRUE(has(ended.err, "tutti: diverged: " + reason + "\n")) << ended.err;
  EXPECT_EQ(all.find(reason), all.rfind(reason)) << all;
  EXPECT_TRUE(has(ended.out, "status    diverged\n")) << ended.out;
  EXPECT_FALSE(has(ended.err, "lost rank")) << ended.err;  // whoever missed the one that diverged
}

}  // namespace
}  // namespace tutti
