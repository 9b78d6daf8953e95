// What a job that somebody else wrote may not do here.
#include "testbed/foreign_job.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/jobs.h"

namespace tutti {
namespace {

using testing_support::Settings;

std::string harm_of(const Settings& settings) {
  try {
    require_harmless(load_job("", settings), "a bundle");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "harmless";
}

TEST(ForeignJob, ReadsNoRunsAndWaitsForNobody) {
  EXPECT_EQ(harm_of({}), "harmless");
  EXPECT_EQ(harm_of({"strategy.kind=parameter_server"}), "harmless");
  const std::string resume =
      harm_of({"strategy.kind=parameter_server", "strategy.resume=/var/somewhere"});
  EXPECT_NE(resume.find("a bundle: its job reads the folder \"/var/somewhere\""), std::string::npos)
      << resume;
  const std::string remote = harm_of({"cluster.workers=2", "cluster.remote=1"});
  EXPECT_NE(remote.find("waits at 127.0.0.1:0 for other machines"), std::string::npos) << remote;
}

TEST(ForeignJob, GeneratedDataHasNoFiles) {
  const Job job = load_job("", testing_support::logistic_task());
  EXPECT_NO_THROW(require_expected_data(job, {}, "a bundle"));
}

}  // namespace
}  // namespace tutti
