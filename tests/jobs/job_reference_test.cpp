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

TEST(JobReference, NamesEverySettingOnceWithItsMeaning) {
  std::set<std::string> seen;
  for (const Setting& setting : job_settings()) {
    const std::string path = setting.table + "." + setting.key;
    EXPECT_TRUE(seen.insert(path).second) << path;
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
}

}  // namespace
}  // namespace tutti
