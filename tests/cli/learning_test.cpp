// Real learning: LeNet reaches 0.88 on Fashion-MNIST within 3 epochs, on both fabrics.
#include <gtest/gtest.h>

#include "fabric/outcome.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;

void expect_to_learn(const std::string& recipe) {
  const TemporaryFolder folder;
  const Ended ended =
      run_tutti({"train", TUTTI_SOURCE "/recipes/" + recipe, "--json", "--out", "run", "--set",
                 "task.stop_at_target=true", "--set", "task.eval_every=0.5"},
                {.folder = folder.path()}, 280);
  ASSERT_EQ(ended.exit_code, kExitDone) << ended.err;
  const auto record = nlohmann::json::parse(ended.out, nullptr, false);
  ASSERT_TRUE(record.is_object()) << ended.out;
  EXPECT_EQ(record["quality"]["target"], 0.88);
  EXPECT_EQ(record["quality"]["reached"], true) << ended.err;
  EXPECT_GE(record["quality"]["best"], 0.88);
  EXPECT_GE(record["quality"]["final"], 0.86) << "on samples that it never saw";
  EXPECT_LE(record["evaluations"].back()["epoch"], 3.0);
}

TEST(Learning, LeNetOnTwoProcesses) { expect_to_learn("fashion-lenet.toml"); }
TEST(Learning, LeNetOnAVirtualCluster) { expect_to_learn("fashion-lenet-virtual.toml"); }

}  // namespace
}  // namespace tutti
