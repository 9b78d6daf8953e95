// `tutti check` of two jobs, and of the plan after nodes have left or come.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fabric/outcome.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;
using nlohmann::json;

class Check : public testing::Test {
 protected:
  void SetUp() override { write_text(folder_ / "job.toml", small_job()); }
  Ended ended(const Arguments& more) {
    return run_tutti(Arguments{"check", "job.toml"} + more, {.folder = folder_.path()});
  }
  std::string text(const Arguments& more) {
    const Ended done = ended(more);
    EXPECT_EQ(done.exit_code, kExitDone) << done.err;
    return done.out;
  }
  json report(const Arguments& more) { return json::parse(text(more + Arguments{"--json"})); }

  TemporaryFolder folder_;
  const Arguments servers_ = {"--set", "strategy={kind=\"parameter_server\", servers=2}", "--set",
                              "cluster.workers=4"};
};

TEST_F(Check, SaysWhatChangesFromOneJobToAnother) {
  std::string other = small_job();
  other.replace(other.find("workers = 2"), 11, "workers = 3");
  write_text(folder_ / "other.toml", other);
  EXPECT_TRUE(has(text({"--diff", "other.toml"}),
                  "from other.toml to job.toml:\nroles: 3 workers -> 2 workers\n"));
  const json changes = report({"--diff", "other.toml"});
  EXPECT_EQ(changes["from"], "other.toml");
  EXPECT_EQ(changes["changes"][0]["about"], "roles");
}

TEST_F(Check, PlansForTheNodesThatAreThereNext) {
  const json next = report(servers_ + Arguments{"--without", "1,5", "--with", "2"});
  EXPECT_EQ(next["planned"]["epoch"], 1);
  EXPECT_EQ(next["planned"]["workers"], 5);
  EXPECT_EQ(next["planned"]["nodes"].size(), 6u);
  EXPECT_EQ(next["planned"]["role_settings"], json({{"server", "servers"}}));
  EXPECT_EQ(next["without"], json({1, 5}));
  EXPECT_EQ(next["with"], 2);
  EXPECT_EQ(next["next_ranks"], json::parse("[0, null, 1, 2, 5, null]"));
  EXPECT_EQ(next["changes"][0]["about"], "ranks");
  EXPECT_EQ(report(servers_)["planned"]["epoch"], 0);

  const std::string words = text(servers_ + Arguments{"--without", "5,1,5"});
  EXPECT_TRUE(has(words, "cluster   process, 3 workers")) << words;
  EXPECT_TRUE(has(words, "without ranks 1 and 5:\nranks: 2 to 4 become 1 to 3\n"
                         "roles: 4 workers, 2 servers -> 3 workers, 1 server\n"))
      << words;
}

TEST_F(Check, RefusesNodesThatTheStrategyNeedsAndThoseThatAreNotThere) {
  const auto expect = [&](const Arguments& more, const std::string& part) {
    const Ended refused = ended(servers_ + more);
    EXPECT_EQ(refused.exit_code, kExitBadJob);
    EXPECT_TRUE(has(refused.err, part)) << refused.err;
  };
  expect({"--without", "4,5"}, "strategy.servers = 2, but no server is left");
  expect({"--without", "6"}, "--without 6: there is no such rank");
  expect({"--without", "-1"}, "--without: Value -1 not in range");
  expect({"--without", "1", "--diff", "job.toml"}, "--diff excludes --without");
}

}  // namespace
}  // namespace tutti
