// What the program is made of where it runs: who loads LibTorch, and whose memory it is.
#include <gtest/gtest.h>

#include <map>
#include <regex>

#include "fabric/outcome.h"
#include "tests/support/proc.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;

// Where each library lies in a process. The system chooses anew whenever a program is started, so
// that two have a library in one place only if one was forked from the other when it was there.
std::map<std::string, std::string> libraries_of(pid_t pid) {
  std::map<std::string, std::string> found;
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t slash = line.rfind('/');
    if (slash == std::string::npos) continue;
    const std::string file = line.substr(slash + 1);
    if (const size_t end = file.find(".so"); end != std::string::npos)
      found.emplace(file.substr(0, end), line.substr(0, line.find('-')));
  }
  return found;
}

class Libraries : public testing::Test {
 protected:
  TemporaryFolder folder_;
};

TEST_F(Libraries, NodesHaveLibtorchFromTheirLauncher) {
  write_text(folder_ / "job.toml", endless_job());
  Subprocess launcher({"train", "job.toml", "--out", "run"}, {.folder = folder_.path()});
  ASSERT_TRUE(eventually([&] { return evaluations_in(folder_ / "run") > 0; }, kLate_s))
      << launcher.err();
  const auto expected = libraries_of(launcher.pid());
  const std::vector<pid_t> nodes = children_of(launcher.pid());
  EXPECT_EQ(nodes.size(), 4u);
  for (const pid_t node : nodes) {
    const auto libraries = libraries_of(node);
    for (const char* name : {"libtutti_torch", "libtorch_cpu"}) {
      ASSERT_TRUE(expected.contains(name)) << name;
      ASSERT_TRUE(libraries.contains(name)) << name;
      EXPECT_EQ(libraries.at(name), expected.at(name)) << name;
    }
    EXPECT_FALSE(libraries.contains("libsimgrid")) << "nothing is simulated here";
  }
  launcher.signal(SIGINT);
  EXPECT_EQ(launcher.wait(kSoonS).exit_code, kExitInterrupted);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// What mimalloc says of itself at the end: the data went through it, not only a library of it.
TEST_F(Libraries, MemoryComesFromMimalloc) {
  constexpr double kDataMiB = 200'000 * 100 * sizeof(float) / 1048576.0;
  write_text(folder_ / "job.toml", small_job());
  const Ended ended =
      run_tutti({"train", "job.toml", "--out", "run", "-q", "--set", "task.max_steps=1", "--set",
                 "task.data={kind=\"synthetic-classes\", samples=200000, features=100, classes=3}"},
                {.folder = folder_.path(), .environment = {"MIMALLOC_SHOW_STATS=1"}});
  EXPECT_EQ(ended.exit_code, kExitDone) << ended.err;
  std::smatch match;
  ASSERT_TRUE(std::regex_search(ended.err, match, std::regex("reserved: +([0-9.]+) ([MG])iB")))
      << ended.err;
  EXPECT_GT(std::stod(match[1]) * (match[2] == "G" ? 1024 : 1), kDataMiB);
}
#endif

}  // namespace
}  // namespace tutti
