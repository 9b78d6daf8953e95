// `tutti advise` as its users meet it: what it writes, keeps and says when it is interrupted.
#include <gtest/gtest.h>

#include <filesystem>

#include "fabric/outcome.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;

class AdviseCommand : public testing::Test {
 protected:
  AdviseCommand() {
    write_text(folder_ / "job.toml", small_job());
    write_text(folder_ / "cluster.toml",
               "[cluster]\nfabric = \"virtual\"\nworkers = 4\nspeed = \"10 MFLOP/s\"\n");
  }
  Arguments command(const Arguments& more) const {
    Arguments all = {"advise",  "job.toml",         "--cluster", "cluster.toml",
                     "--quick", "--declared-speed", "--set",     "task.target=0.5"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  SubprocessOptions options() const {
    return {.folder = folder_.path(), .environment = {"XDG_CACHE_HOME=" + folder_.path() + "/c"}};
  }
  Ended ask(const Arguments& more) const { return run_tutti(command(more), options(), kLate_s); }
  static bool says(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
  TemporaryFolder folder_;
};

TEST_F(AdviseCommand, WritesTheJobToRun) {
  for (const char* option : {"--write", "--out"}) {
    const Ended ended = ask({"--strategies", "solo,ring", option, "best.toml"});
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_TRUE(says(ended.out, "best.toml is the job to run")) << ended.out;
    // The sentence is the last line.
    const size_t last = ended.out.rfind('\n', ended.out.size() - 2);
    EXPECT_EQ(ended.out.substr(last + 1, 4), "Use ") << ended.out;
    const Ended trained =
        run_tutti({"train", "best.toml", "--out", "run", "--json"}, options(), kLate_s);
    EXPECT_EQ(trained.exit_code, 0) << trained.err;
    std::filesystem::remove_all(folder_ / "run");
    std::filesystem::remove(folder_ / "best.toml");
  }
}

TEST_F(AdviseCommand, KeepsWhatItLearned) {
  const Ended first = ask({"--strategies", "solo,ring"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_TRUE(says(first.err, "learning: ")) << first.err;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "c/tutti/lessons"));
  const Ended second = ask({"--strategies", "solo,ring"});
  EXPECT_FALSE(says(second.err, "learning: ")) << second.err;
  EXPECT_TRUE(says(second.out, "--no-cache learns anew")) << second.out;
  const Ended anew = ask({"--strategies", "solo,ring", "--no-cache"});
  EXPECT_TRUE(says(anew.err, "learning: ")) << anew.err;
}

TEST_F(AdviseCommand, PrintsTheAnswerSoFarWhenItIsInterrupted) {
  for (const bool json : {false, true}) {
    Arguments words = command({"--strategies", "solo,ring", "--seeds", "100", "--no-cache"});
    if (json) words.push_back("--json");
    Subprocess process(words, options());
    ASSERT_TRUE(eventually([&] { return says(process.err(), " s: Use "); }, kLate_s))
        << process.err();
    process.signal_group(SIGINT);
    const Ended ended = process.wait(kSoonS);
    EXPECT_FALSE(ended.late);
    EXPECT_EQ(ended.exit_code, kExitInterrupted) << ended.err;
    if (!json) {
      EXPECT_TRUE(says(ended.out, "Interrupted: this is the answer so far.")) << ended.out;
      continue;
    }
    const auto advice = nlohmann::json::parse(ended.out, nullptr, false);
    ASSERT_TRUE(advice.is_object()) << ended.out;
    EXPECT_EQ(advice["status"], "interrupted");
    EXPECT_TRUE(says(advice["sentence"], "Use ")) << advice["sentence"];
  }
}

TEST_F(AdviseCommand, RefusesABudgetThatIsNone) {
  for (const char* budget : {"0", "-3s", "soon", "5 parsecs"}) {
    const Ended ended = ask({std::string("--budget=") + budget});
    EXPECT_EQ(ended.exit_code, kExitBadJob) << budget;
    EXPECT_TRUE(says(ended.err, "--budget")) << ended.err;
    EXPECT_TRUE(says(ended.err, "10min")) << ended.err;
  }
}

// A line for each reason, as in a comparison; in full where that is wanted.
TEST_F(AdviseCommand, SaysBrieflyWhatIsNotPossible) {
  const Ended brief = ask({"--strategies", "solo,direct,hierarchical"});
  ASSERT_EQ(brief.exit_code, 0) << brief.err;
  EXPECT_TRUE(says(brief.out, "Not possible here (--verbose says all of it)\n")) << brief.out;
  EXPECT_TRUE(says(brief.out, "  direct: ")) << brief.out;
  const Ended full = ask({"--strategies", "solo,direct,hierarchical", "--verbose"});
  EXPECT_TRUE(says(full.out, "Not possible here\n")) << full.out;
  const auto reason_in = [](const std::string& text) {
    const size_t begin = text.find("  direct: ");
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  EXPECT_LE(reason_in(brief.out).size(), 100u) << brief.out;
  EXPECT_LT(reason_in(brief.out).size(), reason_in(full.out).size()) << full.out;
}

// With every variant of the catalog no name is cut.
TEST_F(AdviseCommand, CutsNoName) {
  const Ended ended = ask({"--strategies", "elastic-averaging-async,solo,diloco-streaming"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_TRUE(says(ended.out, " elastic-averaging-async ")) << ended.out;
}

}  // namespace
}  // namespace tutti
