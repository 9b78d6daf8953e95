// The scripts that everything begins with: from any folder, without a terminal, again and again.
// What they do on a new machine is tried by whatever calls ./scripts/test there.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;

Ended run_script(const std::string& name, const Arguments& arguments = {}) {
  return Subprocess(arguments, {.folder = "/", .program = TUTTI_SOURCE "/scripts/" + name})
      .wait(kLate_s);
}

TEST(Scripts, SetUpAndBuildAgainAndAgainFromAnywhere) {
  // A test is no place to build in, beside others that run what would be replaced.
  const auto built = std::filesystem::last_write_time(TUTTI_SOURCE "/build/release/.ninja_log");
  for (const char* folder : {"src", "tests", "bench", "examples"})
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(std::string(TUTTI_SOURCE "/") + folder))
      ASSERT_LE(entry.last_write_time(), built) << entry.path() << " is newer: build first";
  for (int time = 0; time < 2; ++time) {
    const Ended setup = run_script("setup");
    EXPECT_EQ(setup.exit_code, 0) << setup.err;
    EXPECT_EQ(setup.out + setup.err, "") << "all was there already";
    const Ended build = run_script("build");
    EXPECT_EQ(build.exit_code, 0) << build.err;
    EXPECT_EQ(build.out, "");
    EXPECT_TRUE(has(build.err, "no work to do")) << build.err;
  }
}

TEST(Scripts, RefuseWhatTheyDoNotKnow) {
  for (const char* name : {"setup", "build"}) {
    const Ended ended = run_script(name, {"--no-such"});
    EXPECT_EQ(ended.exit_code, 2) << name;
    EXPECT_TRUE(has(ended.err, "unknown option --no-such")) << ended.err;
  }
}

}  // namespace
}  // namespace tutti
