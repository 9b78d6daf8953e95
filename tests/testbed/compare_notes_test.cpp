// What `tutti compare` says below its table, and before it begins: which machines stay idle, and
// what is odd about the data.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fabric/outcome.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;

class CompareNotes : public testing::Test {
 protected:
  Ended run(const Arguments& arguments) {
    const Ended ended = run_tutti(arguments, {.folder = folder_.path()}, 120);
    EXPECT_EQ(ended.exit_code, kExitDone) << ended.err;
    return ended;
  }
  TemporaryFolder folder_;
};

// An early-exit network of two tiers uses two machines, whoever else is in the table.
TEST_F(CompareNotes, MachinesThatStayIdleAreCountedByTheCluster) {
  write_text(folder_ / "job.toml",
             "name = \"small\"\n[task]\n"
             "data = { kind = \"synthetic-classes\", samples = 400, features = 8, classes = 3 }\n"
             "model = { kind = \"mlp\", hidden = [16, 16] }\nglobal_batch = 32\nepochs = 1\n"
             "[cluster]\nfabric = \"virtual\"\nworkers = 16\n");
  for (const std::string strategies : {"solo,early-exit", "solo,early-exit,ring", "early-exit"}) {
    const Ended ended =
        run({"compare", "job.toml", "--quiet", "--strategies", strategies, "--out", strategies});
    EXPECT_TRUE(has(ended.out, "on 2 of 16 machines: early-exit; the others stay idle"))
        << ended.out;
    EXPECT_EQ(json_in(folder_ / (strategies + "/compare.json"))["cluster"]["machines"], 16);
  }
  const Ended all = run({"compare", "job.toml", "--quiet", "--strategies", "solo,ring"});
  EXPECT_FALSE(has(all.out, "idle")) << all.out;
}

// Nobody means 30 different numbers to be 30 kinds without knowing it, whichever command asks.
TEST_F(CompareNotes, ManyNumbersAsClassesAreAskedAbout) {
  std::string table = "a,b,y\n";
  for (int i = 0; i < 200; ++i) table += fmt::format("{},{},{}\n", i % 7, i % 5, i % 30);
  write_text(folder_ / "table.csv", table);
  const std::string task =
      "[task]\ndata = { kind = \"csv\", path = \"table.csv\" }\nmodel = \"logistic\"\n"
      "global_batch = 20\nepochs = 1\ntarget = 0.02\n[cluster]\nfabric = \"virtual\"\nworkers = "
      "2\n";
  write_text(folder_ / "job.toml", "name = \"many\"\n" + task);
  const std::string remedy = "the label has 30 different numbers", key = "task.data.regression";
  const Arguments compare = {"compare", "job.toml", "--strategies", "solo,ring"};
  const Ended compared = run(compare + Arguments{"--out", "c"});
  EXPECT_TRUE(has(compared.err, remedy) && has(compared.err, key)) << compared.err;
  EXPECT_EQ(run(compare + Arguments{"--out", "d", "--quiet"}).err, "");
  const Ended surveyed = run({"survey", "--tasks", folder_ / "job.toml", "--cluster", "laptop",
                              "--strategies", "solo", "--out", "s"});
  EXPECT_TRUE(has(surveyed.err, remedy)) << surveyed.err;
  const Ended advised = run({"advise", "job.toml", "--strategies", "solo,ring", "--declared-speed",
                             "--quick", "--no-cache"});
  EXPECT_TRUE(has(advised.err, remedy)) << advised.err;
}

}  // namespace
}  // namespace tutti
