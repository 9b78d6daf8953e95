// The documentation of the settings is generated, and current.
#include <gtest/gtest.h>

#include <set>

#include "jobs/job.h"
#include "jobs/run_folder.h"

namespace tutti {
namespace {

TEST(JobReference, IsWhatTheProgramPrints) {
  EXPECT_TRUE(read_file(TUTTI_SOURCE "/docs/job_reference.md") == job_reference())
      << "docs/job_reference.md is out of date; write it anew from the top folder:\n"
         "  build/release/tutti list settings > docs/job_reference.md";
}

// A key that means something else with another choice is there for each meaning.
TEST(JobReference, NamesEverySettingOnceWithItsMeaning) {
  std::set<std::string> seen, meanings;
  for (const Setting& setting : job_settings()) {
    const std::string path = setting.table + "." + setting.key;
    EXPECT_TRUE(meanings.insert(path + ": " + setting.meaning).second) << path;
    seen.insert(path);
    EXPECT_FALSE(setting.meaning.empty()) << path;
    EXPECT_FALSE(setting.values.empty()) << path;
    EXPECT_FALSE(setting.preset.empty()) << path;
  }
  // Also those that only one alternative of a choice has.
  for (const char* path :
       {"task.data.path", "task.data.labels_path", "task.data.context", "task.data.noise",
        "task.model.channels", "task.model.l2", "optimizer.momentum", "optimizer.decay",
        "optimizer.beta2", "optimizer.final_fraction", "optimizer.step_factor", "strategy.topology",
        "cluster.speed", "cluster.stragglers.probability", "cluster.faults.restart"})
    EXPECT_TRUE(seen.contains(path)) << path;
  size_t shards = 0;
  for (const std::string& meaning : meanings) shards += meaning.starts_with("strategy.shards: ");
  EXPECT_EQ(shards, 3U) << "of parameter_server, hybrid and tensor";
}

}  // namespace
}  // namespace tutti
