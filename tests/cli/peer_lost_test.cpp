// Killing processes of a run: survivors say whom they lost and when, and nothing is left behind.
#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <filesystem>

#include "collectives/topology.h"
#include "core/random.h"
#include "fabric/outcome.h"
#include "tests/support/proc.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;

constexpr size_t kWorkers = 4;

// A run of the endless job that has trained for a while.
class LongRun {
 public:
  explicit LongRun(const Arguments& settings, size_t workers = kWorkers) {
    write_text(folder_ / "job.toml", endless_job());
    std::filesystem::create_directory(folder_ / "tmp");
    Arguments arguments = {"train", "job.toml", "--out", "run", "--quiet"};
    for (const std::string& setting : settings) arguments = arguments + Arguments{"--set", setting};
    process_.emplace(arguments, SubprocessOptions{.folder = folder_.path(),
                                                  .environment = {"TMPDIR=" + (folder_ / "tmp")}});
    EXPECT_TRUE(eventually([&] { return evaluations_in(folder_ / "run") > 0; }, 30))
        << process_->err();
    nodes_ = children_of(process_->pid());
    EXPECT_EQ(nodes_.size(), workers);
    for (const pid_t node : nodes_) named_files_ += named_files_of(node, folder_ / "tmp");
  }
  Subprocess& process() { return *process_; }
  const std::vector<pid_t>& nodes() const { return nodes_; }
  std::string record() const { return folder_ / "run/run.json"; }
  size_t evaluations() const { return evaluations_in(folder_ / "run"); }

  void expect_nothing_left() const {
    EXPECT_EQ(named_files_, "") << "these outlive a process that is killed";
    for (const pid_t node : nodes_) {
      EXPECT_FALSE(is_alive(node)) << node;
      // The kernel frees memory when the last thread of the last process that maps it has ended,
      // which may be a little after the process is seen as dead.
      EXPECT_TRUE(eventually([&] { return !owners_of_segments().contains(node); }, 2))
          << "a shared memory segment is left";
    }
    EXPECT_FALSE(owners_of_segments().contains(process_->pid()));
    EXPECT_TRUE(std::filesystem::is_empty(folder_ / "tmp"));
  }

 private:
  TemporaryFolder folder_;
  std::optional<Subprocess> process_;
  std::vector<pid_t> nodes_;
  std::string named_files_;
};

void sleep_s(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

struct LostIn {
  std::string name;
  Arguments settings;
};
class PeerLost : public testing::TestWithParam<LostIn> {};

TEST_P(PeerLost, EverySurvivorNamesTheRankAndTheStep) {
  Random random(std::hash<std::string>()(GetParam().name), Stream::kTest);
  for (const size_t victim : {size_t{0}, kWorkers - 1, 1 + random.below(kWorkers - 2)}) {
    SCOPED_TRACE("rank " + std::to_string(victim));
    LongRun run(GetParam().settings);
    ASSERT_EQ(run.nodes().size(), kWorkers);
    sleep_s(0.05 * random.uniform());
    kill(run.nodes()[victim], SIGKILL);
    const Ended ended = run.process().wait(kSoonS);
    EXPECT_FALSE(ended.late) << "a survivor did not notice";
    EXPECT_EQ(ended.exit_code, kExitPeerLost) << ended.err;
    for (size_t rank = 0; rank < kWorkers; ++rank) {
      if (rank == victim) continue;
      const std::string who = "rank " + std::to_string(rank) + " at step ";
      const size_t line = ended.err.find(who);
      ASSERT_NE(line, std::string::npos) << who << "is not in\n" << ended.err;
      const std::string text = ended.err.substr(line, ended.err.find('\n', line) - line);
      EXPECT_GT(std::stoi(text.substr(who.size())), 0) << text;
      EXPECT_TRUE(has(text.substr(who.size()), "rank " + std::to_string(victim))) << text;
    }
    const nlohmann::json record = json_in(run.record());
    ASSERT_TRUE(record.is_object());
    EXPECT_EQ(record["status"], "peer lost");
    EXPECT_EQ(record["exit_code"], kExitPeerLost);
    EXPECT_EQ(record["nodes"].size(), kWorkers - 1) << "survivors report what they did";
    run.expect_nothing_left();
  }
}

std::vector<LostIn> synchronous_strategies() {
  std::vector<LostIn> all;
  for (const TopologyEntry& entry : topology_catalog()) {
    all.push_back({std::string(entry.name), {"strategy.topology=" + std::string(entry.name)}});
    if (entry.name == "hierarchical") all.back().settings.push_back("cluster.racks=2");
  }
  for (const char* kind : {"local_sgd", "gossip", "elastic_averaging", "hogwild"})
    all.push_back({kind, {"strategy.kind=" + std::string(kind)}});
  for (const char* schedule : {"1f1b", "asynchronous"})
    all.push_back({"pipeline_" + std::string(schedule),
                   {"strategy.kind=pipeline", "strategy.schedule=\"" + std::string(schedule) + "\"",
                    "task.model.hidden=[50, 50, 50]"}});
  all.push_back({"pipeline_servers",
                 {"strategy.kind=pipeline_servers", "cluster.workers=3",  // and a server
                  "task.model.hidden=[50, 50, 50]"}});
  all.push_back({"tensor", {"strategy.kind=tensor", "task.model.hidden=[50, 50, 50]"}});
  all.push_back({"early_exit",
                 {"strategy.kind=early_exit", "strategy.devices=2", "task.model.hidden=[50, 50]"}});
  all.push_back({"model_averaging", {"strategy.kind=model_averaging", "strategy.merge_every=0.1"}});
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, PeerLost, testing::ValuesIn(synchronous_strategies()),
                         [](const auto& test) { return test.param.name; });

class GoesOn : public testing::TestWithParam<std::string> {};

TEST_P(GoesOn, WithoutAWorkerThatWasKilled) {
  LongRun run({"strategy.kind=" + GetParam(), "strategy.mode=async"});
  ASSERT_EQ(run.nodes().size(), kWorkers);
  kill(run.nodes()[2], SIGKILL);
  const size_t before = run.evaluations();
  EXPECT_TRUE(eventually([&] { return run.evaluations() > before + 3; }, 30));
  run.process().signal(SIGINT);
  EXPECT_EQ(run.process().wait(kSoonS).exit_code, kExitInterrupted);
  run.expect_nothing_left();
}

INSTANTIATE_TEST_SUITE_P(All, GoesOn, testing::Values("gossip", "elastic_averaging"),
                         [](const auto& test) { return test.param; });

// The server is the node after the workers. Its clients are dealt to the workers that are left.
TEST(FederatedAveraging, GoesOnWithoutAWorkerAndEndsWithoutItsServer) {
  LongRun run({"strategy.kind=federated_averaging"}, kWorkers + 1);
  ASSERT_EQ(run.nodes().size(), kWorkers + 1);
  kill(run.nodes()[2], SIGKILL);
  const size_t before = run.evaluations();
  EXPECT_TRUE(eventually([&] { return run.evaluations() > before + 3; }, 30));
  kill(run.nodes()[kWorkers], SIGKILL);
  const Ended ended = run.process().wait(30);
  EXPECT_EQ(ended.exit_code, kExitPeerLost) << ended.err;
  EXPECT_TRUE(has(ended.err, "lost rank " + std::to_string(kWorkers))) << ended.err;
  run.expect_nothing_left();
}

// Ctrl-Z stops the launcher and all nodes; `fg` lets them go on, however much later.
TEST(Suspended, GoesOnAfterLongerThanTheTimeout) {
  for (const char* kind : {"allreduce", "parameter_server", "federated_averaging"}) {
    LongRun run({"strategy.kind=" + std::string(kind), "cluster.timeout=2"},
                kWorkers + (kind == std::string("allreduce") ? 0 : 1));
    std::vector<pid_t> all = run.nodes();
    all.push_back(run.process().pid());
    for (const pid_t process : all) kill(process, SIGSTOP);
    const size_t before = run.evaluations();
    sleep_s(3);
    for (const pid_t process : all) kill(process, SIGCONT);
    EXPECT_TRUE(eventually([&] { return run.evaluations() > before + 3; }, 30)) << kind;
    run.process().signal(SIGINT);
    const Ended ended = run.process().wait(kSoonS);
    EXPECT_EQ(ended.exit_code, kExitInterrupted) << kind << ": " << ended.err;
    EXPECT_FALSE(has(ended.err, "sent nothing")) << kind << ": " << ended.err;
    run.expect_nothing_left();
  }
}

// All nodes have the same timeout, also those that wait for the server, which waits for the stopped
// worker.
TEST(Stopped, AWorkerIsGoneOnWithoutBeforeOthersGiveUp) {
  for (const char* kind : {"parameter_server", "federated_averaging"}) {
    LongRun run({"strategy.kind=" + std::string(kind), "cluster.timeout=4"}, kWorkers + 1);
    ASSERT_EQ(run.nodes().size(), kWorkers + 1);
    kill(run.nodes()[2], SIGSTOP);
    const size_t before = run.evaluations();
    EXPECT_TRUE(eventually([&] { return run.evaluations() > before + 6; }, 30)) << kind;
    run.process().signal(SIGINT);
    const Ended ended = run.process().wait(kSoonS);
    EXPECT_EQ(ended.exit_code, kExitInterrupted) << kind << ": " << ended.err;
    EXPECT_EQ(json_in(run.record())["lost"], nlohmann::json({2})) << kind;
    run.expect_nothing_left();
  }
}

// Kills the `index`-th forked node this long after its fork.
Ended train_with_early_kill(const Arguments& settings, size_t index, double delay_s) {
  const TemporaryFolder folder;
  write_text(folder / "job.toml", endless_job());
  Arguments arguments = {"train", "job.toml", "--out", "run", "--quiet"};
  for (const std::string& setting : settings) arguments = arguments + Arguments{"--set", setting};
  Subprocess process(arguments, SubprocessOptions{.folder = folder.path()});
  std::vector<pid_t> nodes;
  const auto forked = [&] { return (nodes = children_of(process.pid())).size() > index; };
  EXPECT_TRUE(eventually(forked, 30)) << process.err();
  sleep_s(delay_s);
  if (nodes.size() > index) kill(nodes[index], SIGKILL);
  return process.wait(30);
}

// The node dies before it has met the others, or while they connect to it. process_test tries many
// more moments.
TEST(KilledAtItsStart, EndsTheRunOrIsGoneOnWithout) {
  const Ended lost = train_with_early_kill({}, 1, 0.002);
  EXPECT_FALSE(lost.late);
  EXPECT_EQ(lost.exit_code, kExitPeerLost) << lost.err;
  EXPECT_TRUE(has(lost.err, "lost rank 1")) << lost.err;
  EXPECT_TRUE(has(lost.err, "rank 1 was killed")) << lost.err;
  for (const char* kind : {"parameter_server", "federated_averaging"}) {
    const Ended done = train_with_early_kill(
        {"strategy.kind=" + std::string(kind), "task.epochs=1", "task.max_steps=20"}, 1, 0);
    EXPECT_FALSE(done.late) << kind;
    EXPECT_EQ(done.exit_code, kExitDone) << kind << ": " << done.err;
  }
}

// The nodes become ours when their launcher dies, so that they can be reaped.
TEST(LauncherKilled, TakesItsNodesAlong) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (const char* fabric : {"process", "virtual"})
    for (int repetition = 0; repetition < 2; ++repetition) {
      const bool simulated = std::string(fabric) == "virtual";
      LongRun run({"cluster.fabric=" + std::string(fabric)}, simulated ? 1 : kWorkers);
      run.process().signal(SIGKILL);
      EXPECT_EQ(run.process().wait(kSoonS).signal, SIGKILL);
      const auto all_gone = [&] {
        while (waitpid(-1, nullptr, WNOHANG) > 0) {
        }
        return std::none_of(run.nodes().begin(), run.nodes().end(), is_alive);
      };
      EXPECT_TRUE(eventually(all_gone, 2)) << fabric;
      run.expect_nothing_left();
    }
}

}  // namespace
}  // namespace tutti
