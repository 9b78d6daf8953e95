// More memory than there is: refused where it can be known, and otherwise an error that says so.
#include <gtest/gtest.h>

#include <filesystem>

#include "fabric/outcome.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;

class Limits : public testing::Test {
 protected:
  Limits() { write_text(folder_ / "job.toml", small_job()); }
  TemporaryFolder folder_;
};

// Terabytes, on processes of this machine.
TEST_F(Limits, JobsTooLargeForThisMachineAreRefused) {
  const std::string huge = "task.model={kind=\"mlp\", hidden=[1000000, 1000000]}";
  for (const std::string command : {"check", "train"}) {
    const Ended ended = run_tutti({command, "job.toml", "--set", huge}, {.folder = folder_.path()});
    EXPECT_EQ(ended.exit_code, kExitBadJob) << ended.out;
    for (const char* part : {"job.toml:15:", "2 workers", "need 16 TB (8 TB each)",
                             "of this machine", "fewer cluster.workers"})
      EXPECT_TRUE(has(ended.err, part)) << ended.err;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "runs"));
  }
  // What others bring is not taken from here; each of them may have as much as it likes.
  const Ended guests = run_tutti({"check", "job.toml", "--set", huge, "--set", "cluster.remote=1"},
                                 {.folder = folder_.path()});
  EXPECT_TRUE(has(guests.err, "a worker")) << guests.err;
  EXPECT_TRUE(has(guests.err, "needs 12 TB ")) << guests.err;
  // On a simulated cluster it is the node's memory that counts.
  const Ended simulated =
      run_tutti({"check", "job.toml", "--set", huge, "--set", "cluster.fabric=virtual"},
                {.folder = folder_.path()});
  EXPECT_TRUE(has(simulated.err, "cluster.memory")) << simulated.err;
}

#ifndef __SANITIZE_ADDRESS__
// The predicted need fits the machine, but not what its user may have (`ulimit -v`).
TEST_F(Limits, MemoryThatCannotBeHadIsAnErrorOfItsNode) {
  const Ended ended = run_tutti({"train", "job.toml", "--out", "run", "--set",
                                 "task.model={kind=\"mlp\", hidden=[8000, 8000]}"},
                                {.folder = folder_.path(), .address_space = rlim_t{1200} << 20});
  EXPECT_EQ(ended.exit_code, kExitInternal) << ended.err;
  EXPECT_TRUE(has(ended.err, "rank 0: out of memory") || has(ended.err, "rank 1: out of memory"))
      << ended.err;
  EXPECT_TRUE(has(ended.err, "ulimit -v")) << ended.err;
  EXPECT_FALSE(has(ended.err, "signal")) << ended.err;
  EXPECT_EQ(json_in(folder_ / "run/run.json").value("status", ""), "failed");
}
#endif

}  // namespace
}  // namespace tutti
