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

}  // namespace
}  // namespace tutti
