// The log of each node in the run folder.
#include <gtest/gtest.h>

#include <filesystem>

#include "fabric/outcome.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;

class Logs : public testing::Test {
 protected:
  Logs() { write_text(folder_ / "job.toml", small_job()); }
  void train(const Arguments& sets, rlim_t open_files = RLIM_INFINITY) {
    Arguments arguments = {"train", "job.toml", "--out", "run", "-q"};
    for (const std::string& set : sets) arguments = arguments + Arguments{"--set", set};
    const Ended ended = run_tutti(arguments, {.folder = folder_.path(), .open_files = open_files});
    EXPECT_EQ(ended.exit_code, kExitDone) << ended.err;
  }
  std::string log_of(int rank) {
    return content_of(folder_ / fmt::format("run/node-{}.log", rank));
  }
  TemporaryFolder folder_;
};

// A simulated cluster is one process, which may not have a file open for each of its nodes.
TEST_F(Logs, EveryNodeOfALargeClusterHasOne) {
  train({"cluster.fabric=virtual", "cluster.workers=150", "task.global_batch=150",
         "strategy.topology=butterfly"},
        100);
  for (const int rank : {0, 64, 65, 149}) {
    EXPECT_TRUE(has(log_of(rank), fmt::format("rank {} of 150", rank))) << log_of(rank);
    EXPECT_TRUE(has(log_of(rank), "done")) << log_of(rank);
  }
}

// What it logged before it died is what one wants to know.
TEST_F(Logs, ANodeThatIsStartedAgainGoesOnInItsOwn) {
  write_text(folder_ / "job.toml", small_job() +
                                       "speed = \"10 MFLOP/s\"\n"
                                       "detect = 0.05\n"
                                       "[[cluster.faults]]\n"
                                       "at = 0.003\nnodes = [2]\nrestart = 0.002\n");
  train({"cluster.fabric=virtual", "cluster.workers=4", "strategy={kind=\"gossip\"}",
         "strategy.mode=async", "task.epochs=20"});
  const size_t first = log_of(2).find("rank 2 of 4");
  ASSERT_NE(first, std::string::npos) << log_of(2);
  EXPECT_NE(log_of(2).find("rank 2 of 4", first + 1), std::string::npos) << log_of(2);
}

// A run that was killed before it had a record leaves its folder to the next one, but not its logs.
TEST_F(Logs, ThoseOfAnotherRunAreNotGoneOnWith) {
  std::filesystem::create_directory(folder_ / "run");
  for (const int rank : {0, 7})
    write_text(folder_ / fmt::format("run/node-{}.log", rank), "of another run\n");
  train({});
  EXPECT_FALSE(has(log_of(0), "of another run")) << log_of(0);
  EXPECT_TRUE(has(log_of(0), "rank 0 of 2")) << log_of(0);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run/node-7.log"));
}

}  // namespace
}  // namespace tutti
