// `tutti bench`: what cannot be measured is said before minutes of measuring, it stops when asked,
// and runs from wherever it lies. The figures themselves are for ./scripts/bench.
#include <gtest/gtest.h>

#include <filesystem>

#include "fabric/outcome.h"
#include "tests/support/proc.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;
using nlohmann::json;

class Bench : public testing::Test {
 protected:
  void expect_refused(const Arguments& arguments, const std::vector<std::string>& parts) {
    const Ended ended = run_tutti(Arguments{"bench"} + arguments, {.folder = folder_.path()});
    EXPECT_EQ(ended.exit_code, kExitBadJob) << ended.out << ended.err;
    for (const std::string& part : parts) EXPECT_TRUE(has(ended.err, part)) << ended.err;
    EXPECT_FALSE(has(ended.err, "round")) << "it measured first: " << ended.err;
    EXPECT_EQ(ended.out, "");
  }
  TemporaryFolder folder_;
};

TEST_F(Bench, WhatCannotBeIsRefusedFirst) {
  expect_refused({"allreduce", "--processes", "0"}, {"--processes 0", "1 to 256"});
  expect_refused({"allreduce", "--processes", "2,-3"}, {"--processes -3"});
  expect_refused({"network", "--processes", "1"}, {"--processes 1"});
  expect_refused({"allreduce", "--only", "nothing"}, {"'nothing'", "direct", "shared loop"});
  expect_refused({"allreduce", "--only", "dirct"}, {"did you mean 'direct'?"});
  expect_refused({"ps", "--only", "dense,spars"}, {"did you mean 'sparse'?"});
  expect_refused({"startup", "--only", "help"}, {"startup has no parts"});
  expect_refused({"startup", "--out", "no/such/file.json"}, {"no/such/file.json", "written"});
  expect_refused({"startup", "--out", "."}, {"a folder"});
  expect_refused({"all-reduce"}, {"did you mean 'allreduce'?", "startup"});
}

// In its own processes, in those of commands that it runs, and in those of their nodes.
TEST_F(Bench, StopsWhenAsked) {
  const std::vector<Arguments> benches = {{"allreduce", "--only", "direct", "--rounds", "30"},
                                          {"allreduce", "--only", "ring", "--rounds", "1"},
                                          {"ps", "--only", "sparse"},
                                          {"train", "--only", "solos"},
                                          {"virtual"}};
  for (const Arguments& bench : benches)
    for (const bool group : {false, true}) {
      Subprocess process(Arguments{"bench"} + bench, {.folder = folder_.path()});
      std::vector<pid_t> children;
      ASSERT_TRUE(
          eventually([&] { return !(children = children_of(process.pid())).empty(); }, kLate_s));
      std::this_thread::sleep_for(std::chrono::milliseconds(200));  // any moment will do
      if (group)
        process.signal_group(SIGINT);
      else
        process.signal(SIGINT);
      const Ended ended = process.wait(kSoonS);
      EXPECT_FALSE(ended.late) << bench[0];
      EXPECT_EQ(ended.exit_code, kExitInterrupted) << bench[0] << ended.err;
      EXPECT_TRUE(has(ended.err, "tutti: stopping")) << ended.err;
      EXPECT_FALSE(has(ended.err, "failed")) << ended.err;
      for (const pid_t child : children) EXPECT_FALSE(is_alive(child)) << bench[0];
    }
}

// What programs read: one entry for each size, with these names.
TEST_F(Bench, SumsAreAListOfMedians) {
  const Ended ended = run_tutti(
      {"bench", "allreduce", "--only", "direct", "--processes", "2", "--rounds", "1", "--json"},
      {.folder = folder_.path()}, kLate_s);
  EXPECT_EQ(ended.exit_code, kExitDone) << ended.err;
  const json measured = json::parse(ended.out, nullptr, false);
  ASSERT_TRUE(measured.is_array()) << ended.out;
  std::vector<size_t> sizes;
  for (const json& entry : measured) {
    EXPECT_EQ(entry.at("impl"), "direct");
    EXPECT_EQ(entry.at("processes"), 2);
    EXPECT_GT(entry.at("median_us"), 0);
    sizes.push_back(entry.at("bytes"));
  }
  std::vector<size_t> expected;
  for (size_t bytes = 4096; bytes <= size_t{64} << 20; bytes *= 4) expected.push_back(bytes);
  EXPECT_EQ(sizes, expected);
}

TEST_F(Bench, RunsFromAnyFolder) {
  const std::filesystem::path here = folder_ / "a folder, it's mine";
  const std::filesystem::path built = std::filesystem::path(TUTTI_PROGRAM).parent_path();
  std::filesystem::create_directories(here / "tmp dir");
  std::filesystem::copy_file(TUTTI_PROGRAM, here / "tutti");
  for (const char* library : {"libtutti_torch.so", "libtutti_virtual.so"})
    std::filesystem::create_symlink(built / library, here / library);
  const Ended ended = run_tutti({"bench", "startup", "--rounds", "1", "--json"},
                                {.folder = folder_.path(),
                                 .environment = {"TMPDIR=" + (here / "tmp dir").string()},
                                 .program = here / "tutti"},
                                kLate_s);
  EXPECT_EQ(ended.exit_code, kExitDone) << ended.err;
  const json measured = json::parse(ended.out, nullptr, false);
  ASSERT_TRUE(measured.is_array() && measured.size() == 2) << ended.out;
  for (const json& entry : measured) EXPECT_GT(entry.at("median_s"), 0) << entry;
}

}  // namespace
}  // namespace tutti
