// Command lines that cannot be understood: said as every other refusal is, with what was probably
// meant; and what else the program owes to whoever starts it.
#include <gtest/gtest.h>

#include <filesystem>

#include "fabric/outcome.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;
using nlohmann::json;

class Usage : public testing::Test {
 protected:
  Usage() { write_text(folder_ / "job.toml", small_job()); }
  Ended run(const Arguments& arguments) { return run_tutti(arguments, {.folder = folder_.path()}); }
  // One line on standard error that has all `parts`; and, if asked for, the same as an object.
  void expect(const Arguments& arguments, const std::vector<std::string>& parts) {
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.exit_code, kExitBadJob);
    EXPECT_TRUE(ended.err.starts_with("tutti: ")) << ended.err;
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
    for (const std::string& part : parts)
      EXPECT_TRUE(has(ended.err, part)) << "\"" << ended.err << "\" lacks \"" << part << "\"";
    EXPECT_EQ(ended.out, "");
    const Ended again = run(arguments + Arguments{"--json"});
    const json object = json::parse(again.out, nullptr, false);
    ASSERT_TRUE(object.is_object()) << again.out << again.err;
    EXPECT_EQ(object.value("exit_code", 0), kExitBadJob);
    EXPECT_EQ("tutti: " + object.value("error", "") + "\n", again.err);
  }
  TemporaryFolder folder_;
};

TEST_F(Usage, ErrorsHaveOneForm) {
  expect({"train"}, {"train: JOB is required", "tutti train --help"});
  expect({"train", "job.toml", "--progress", "foo"}, {"--progress", "foo", "live,lines,json"});
  expect({"bench", "allreduce", "--rounds", "many"}, {"--rounds", "many"});
  expect({"check", "job.toml", "other.toml"}, {"check does not take 'other.toml'"});
  expect({"trian", "job.toml"}, {"no command 'trian'", "did you mean 'train'?", "survey"});
}

TEST_F(Usage, UnknownOptionsComeWithTheNearest) {
  expect({"train", "job.toml", "--ste", "cluster.workers=3"},
         {"train has no option '--ste'", "did you mean '--set'?"});
  expect({"train", "job.toml", "--set", "cluster.workers=3", "--ste", "x"}, {"'--ste'", "'--set'"});
  expect({"train", "--otu=there", "job.toml"}, {"'--otu'", "did you mean '--out'?"});
  expect({"compare", "job.toml", "--seed", "5"}, {"'--seed'", "did you mean '--seeds'?"});
  const Ended alone = run({"--no-such"});
  EXPECT_EQ(alone.exit_code, kExitBadJob);
  EXPECT_TRUE(has(alone.err, "tutti: there is no option '--no-such'; see tutti --help"))
      << alone.err;
  EXPECT_TRUE(has(run({"--versoin"}).err, "did you mean '--version'?"));
  // An option of the command that stands before it.
  const Ended early = run({"--json", "list", "data"});
  EXPECT_EQ(early.exit_code, kExitBadJob);
  EXPECT_TRUE(has(early.err, "'--json' belongs behind the command: tutti list")) << early.err;
}

// Help and version are output like any other: `tutti --help | true`, or onto a full disk.
TEST_F(Usage, HelpMindsItsReader) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  for (const Arguments& arguments :
       {Arguments{"--help"}, Arguments{"train", "--help"}, Arguments{"--version"}}) {
    const Ended unwritten = run_tutti(arguments, {.out = full});
    EXPECT_EQ(unwritten.exit_code, kExitInternal) << arguments.back();
    EXPECT_TRUE(has(unwritten.err, "No space left")) << unwritten.err;
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    EXPECT_EQ(run_tutti(arguments, {.out = ends[1]}).exit_code, kExitDone) << arguments.back();
    close(ends[1]);
  }
  close(full);
}

// Without standard streams, files of the run get their numbers: nothing else may end up in these.
TEST_F(Usage, ClosedStreamsStayOutOfFiles) {
  const Ended ended =
      run_tutti({"-c", "exec \"$0\" train job.toml --out run <&- >&- 2>&-", TUTTI_PROGRAM},
                {.folder = folder_.path(), .program = "/bin/sh"});
  EXPECT_EQ(ended.exit_code, kExitDone);
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "run")) {
    const std::string text = content_of(entry.path());
    for (const char* printed : {"small allreduce: epoch", "accuracy 0", "accuracy 1"})
      EXPECT_FALSE(has(text, printed)) << entry.path() << text;
  }
  const std::string series = content_of(folder_ / "run/series.csv");
  EXPECT_EQ(std::count(series.begin(), series.end(), '\n'), 1 + 18) << series;
  EXPECT_EQ(json_in(folder_ / "run/run.json").value("status", ""), "done");
}

}  // namespace
}  // namespace tutti
