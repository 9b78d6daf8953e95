// `tutti join`: workers that are started elsewhere, here over loopback.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

#include "fabric/outcome.h"
#include "tests/support/proc.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;

// A launcher that waits for workers, and what it says they should be started with.
class Launcher {
 public:
  explicit Launcher(const std::string& job, const Arguments& settings) {
    write_text(folder_ / "job.toml", job);
    Arguments arguments = {"train", "job.toml", "--out", "run", "--quiet", "--json"};
    for (const std::string& setting : settings) arguments = arguments + Arguments{"--set", setting};
    process_ = std::make_unique<Subprocess>(arguments, SubprocessOptions{.folder = folder_.path()});
  }
  Subprocess& process() { return *process_; }
  std::string run() const { return folder_ / "run"; }

  // HOST:PORT and the token, as printed.
  bool invites() {
    return eventually([&] { return process_->err().find("--token ") != std::string::npos; },
                      kLate_s);
  }
  std::string word_after(const std::string& text) {
    const std::string all = process_->err();
    const size_t begin = all.find(text);
    if (begin == std::string::npos) return "";
    const size_t start = begin + text.size();
    return all.substr(start, all.find_first_of(" \n", start) - start);
  }
  std::string address() { return word_after("tutti join "); }
  std::string token() { return word_after("--token "); }
  std::unique_ptr<Subprocess> join(const std::string& token = "") {
    return std::make_unique<Subprocess>(
        Arguments{"join", address(), "--token", token.empty() ? this->token() : token});
  }

 private:
  TemporaryFolder folder_;
  std::unique_ptr<Subprocess> process_;
};

nlohmann::json record_of(const Ended& ended) {
  return nlohmann::json::parse(ended.out, nullptr, false);
}

TEST(Join, TrainsTheSameParametersAsForkedWorkers) {
  const Arguments settings = {"task.deterministic=true", "cluster.workers=3"};
  Launcher forked(small_job(), settings);
  const Ended alone = forked.process().wait(kLate_s);
  ASSERT_EQ(alone.exit_code, kExitDone) << alone.err;

  Launcher launcher(small_job(), settings + Arguments{"cluster.remote=1"});
  ASSERT_TRUE(launcher.invites()) << launcher.process().err();
  const auto joined = launcher.join();
  const Ended ended = launcher.process().wait(kLate_s);
  const Ended left = joined->wait(kLate_s);
  EXPECT_EQ(ended.exit_code, kExitDone) << ended.err;
  EXPECT_EQ(left.exit_code, kExitDone) << left.err;
  EXPECT_TRUE(has(left.err, "as rank 2 of 3")) << left.err;
  const auto record = record_of(ended), expected = record_of(alone);
  ASSERT_TRUE(record.is_object() && expected.is_object()) << ended.out << alone.out;
  EXPECT_EQ(record["parameters_sha256"], expected["parameters_sha256"]);
  EXPECT_EQ(record["workers"], 3);
}

TEST(Join, AWrongTokenEndsThatConnectionOnly) {
  Launcher launcher(small_job(), {"cluster.workers=2", "cluster.remote=1"});
  ASSERT_TRUE(launcher.invites()) << launcher.process().err();
  const Ended refused = launcher.join(std::string(32, '0'))->wait(kLate_s);
  EXPECT_EQ(refused.exit_code, kExitPeerLost);
  EXPECT_TRUE(has(refused.err, "the token is wrong")) << refused.err;
  const auto joined = launcher.join();
  EXPECT_EQ(launcher.process().wait(kLate_s).exit_code, kExitDone);
  EXPECT_EQ(joined->wait(kLate_s).exit_code, kExitDone);
}

TEST(Join, WhoKillsAJoinedWorkerEndsTheRunByName) {
  Launcher launcher(endless_job(), {"cluster.workers=3", "cluster.remote=1"});
  ASSERT_TRUE(launcher.invites()) << launcher.process().err();
  const auto joined = launcher.join();
  ASSERT_TRUE(eventually([&] { return evaluations_in(launcher.run()) > 0; }, kLate_s))
      << launcher.process().err() << joined->err();
  joined->signal(SIGKILL);
  const Ended ended = launcher.process().wait(10);
  EXPECT_FALSE(ended.late) << "nobody noticed";
  EXPECT_EQ(ended.exit_code, kExitPeerLost) << ended.err;
  for (const char* who : {"rank 0 at step ", "rank 1 at step "}) {
    const size_t line = ended.err.find(who);
    ASSERT_NE(line, std::string::npos) << who << "is not in\n" << ended.err;
    EXPECT_TRUE(has(ended.err.substr(line, ended.err.find('\n', line) - line), "rank 2"))
        << ended.err;
  }
}

TEST(Join, LeavesWhenTheLauncherIsKilledOrStopped) {
  for (const int signal : {SIGKILL, SIGINT}) {
    Launcher launcher(endless_job(), {"cluster.workers=2", "cluster.remote=1"});
    ASSERT_TRUE(launcher.invites()) << launcher.process().err();
    const auto joined = launcher.join();
    ASSERT_TRUE(eventually([&] { return evaluations_in(launcher.run()) > 0; }, kLate_s))
        << launcher.process().err() << joined->err();
    launcher.process().signal(signal);
    const Ended left = joined->wait(10);
    EXPECT_FALSE(left.late) << signal;
    EXPECT_EQ(left.exit_code, signal == SIGKILL ? kExitPeerLost : kExitInterrupted) << left.err;
    const Ended ended = launcher.process().wait(10);
    if (signal == SIGINT) {
      EXPECT_EQ(ended.exit_code, kExitInterrupted) << ended.err;
    }
  }
}

TEST(Join, SaysWhoIsMissing) {
  Launcher launcher(small_job(),
                    {"cluster.workers=3", "cluster.remote=2", "cluster.join_timeout=0.5"});
  const Ended ended = launcher.process().wait(kLate_s);
  EXPECT_EQ(ended.exit_code, kExitPeerLost);
  EXPECT_TRUE(has(ended.err, "0 of 2 nodes joined within 0.5 s")) << ended.err;
  EXPECT_TRUE(has(ended.err, "cluster.join_timeout")) << ended.err;
}

TEST(Join, RefusesWhatNeedsOneHost) {
  TemporaryFolder folder;
  write_text(folder / "job.toml", small_job());
  const auto check = [&](const Arguments& settings) {
    Arguments arguments = {"check", "job.toml"};
    for (const std::string& setting : settings) arguments = arguments + Arguments{"--set", setting};
    return Subprocess(arguments, SubprocessOptions{.folder = folder.path()}).wait(kLate_s);
  };
  const Ended direct = check({"cluster.remote=1", "strategy.topology=direct"});
  EXPECT_EQ(direct.exit_code, kExitBadJob);
  EXPECT_TRUE(has(direct.err, "cluster.remote")) << direct.err;
  const Ended all = check({"cluster.remote=2"});
  EXPECT_EQ(all.exit_code, kExitBadJob);
  EXPECT_TRUE(has(all.err, "rank 0")) << all.err;
  EXPECT_EQ(check({"cluster.remote=1"}).exit_code, kExitDone);
}

}  // namespace
}  // namespace tutti
