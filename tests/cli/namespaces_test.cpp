// A run between real hosts as far as one machine has them: network namespaces on a bridge, made and
// removed by the test.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <memory>

#include "fabric/outcome.h"
#include "fabric/process/namespaced_network.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;
using process::NamespacedNetwork;

// Started on one of the hosts: the test goes there and comes back.
std::unique_ptr<Subprocess> start_on(const NamespacedNetwork& network, int host,
                                     const Arguments& arguments, const std::string& folder) {
  const int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  network.enter(host);
  auto started = std::make_unique<Subprocess>(arguments, SubprocessOptions{.folder = folder});
  EXPECT_EQ(setns(home, CLONE_NEWNET), 0);
  close(home);
  return started;
}

class Namespaces : public testing::Test {
 protected:
  // Begins a run with workers on all hosts; it has trained for a moment, or is over, afterwards.
  void launch(const std::string& job, const Arguments& settings, int joiners) {
    network_ = std::make_unique<NamespacedNetwork>(joiners + 1);
    write_text(folder_ / "job.toml", job);
    Arguments arguments = {"train", "job.toml", "--out", "run", "--quiet", "--json"};
    for (const std::string& setting : settings) arguments = arguments + Arguments{"--set", setting};
    arguments = arguments + Arguments{"--set", "cluster.remote=" + std::to_string(joiners), "--set",
                                      "cluster.listen=" + NamespacedNetwork::address(0) + ":4000"};
    launcher_ = start_on(*network_, 0, arguments, folder_.path());
    ASSERT_TRUE(eventually([&] { return has(launcher_->err(), "--token "); }, kLate_s))
        << launcher_->err();
    const std::string said = launcher_->err();
    const size_t token = said.find("--token ") + 8;
    for (int host = 1; host <= joiners; ++host)
      joined_.push_back(start_on(*network_, host,
                                 {"join", NamespacedNetwork::address(0) + ":4000", "--token",
                                  said.substr(token, said.find('\n', token) - token)},
                                 folder_.path()));
  }

  TemporaryFolder folder_;
  std::unique_ptr<NamespacedNetwork> network_;
  std::unique_ptr<Subprocess> launcher_;
  std::vector<std::unique_ptr<Subprocess>> joined_;
};

TEST_F(Namespaces, TrainAcrossHosts) {
  if (const std::string reason = NamespacedNetwork::why_not(); !reason.empty())
    GTEST_SKIP() << reason;
  launch(small_job(), {"task.deterministic=true", "cluster.workers=4"}, 2);
  const Ended ended = launcher_->wait(kLate_s);
  EXPECT_EQ(ended.exit_code, kExitDone) << ended.err;
  for (const auto& joined : joined_) {
    const Ended left = joined->wait(kLate_s);
    EXPECT_EQ(left.exit_code, kExitDone) << left.err;
  }
  const auto record = nlohmann::json::parse(ended.out, nullptr, false);
  ASSERT_TRUE(record.is_object());
  write_text(folder_ / "alone.toml", small_job());
  Subprocess alone({"train", "alone.toml", "--quiet", "--json", "--set", "task.deterministic=true",
                    "--set", "cluster.workers=4"},
                   SubprocessOptions{.folder = folder_.path()});
  const auto expected = nlohmann::json::parse(alone.wait(kLate_s).out, nullptr, false);
  EXPECT_EQ(record["parameters_sha256"], expected["parameters_sha256"]);
}

// Nothing is closed and nobody dies: only the silence tells.
TEST_F(Namespaces, ACutLinkIsALostPeerOnBothSides) {
  if (const std::string reason = NamespacedNetwork::why_not(); !reason.empty())
    GTEST_SKIP() << reason;
  launch(endless_job(), {"cluster.workers=3"}, 1);
  ASSERT_TRUE(eventually([&] { return evaluations_in(folder_ / "run") > 0; }, kLate_s))
      << launcher_->err() << joined_[0]->err();
  network_->cut(1);
  const Ended ended = launcher_->wait(10);
  EXPECT_FALSE(ended.late) << "nobody noticed";
  EXPECT_EQ(ended.exit_code, kExitPeerLost) << ended.err;
  EXPECT_TRUE(has(ended.err, "rank 2")) << ended.err;
  const Ended left = joined_[0]->wait(10);
  EXPECT_FALSE(left.late);
  EXPECT_EQ(left.exit_code, kExitPeerLost) << left.err;
}

}  // namespace
}  // namespace tutti
