// Exit code 130: Ctrl-C and SIGTERM stop a run soon, cleanly, and keep its record.
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <csignal>
#include <filesystem>
#include <tuple>

#include "core/error.h"
#include "fabric/outcome.h"
#include "jobs/launcher.h"
#include "tests/support/proc.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;

size_t times_in(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

// To the launcher alone, or to everyone as a terminal does.
enum class Reach { kLauncher, kGroup };
using Case = std::tuple<std::string, int, Reach>;

class Interrupt : public testing::TestWithParam<Case> {
 protected:
  Interrupt() { write_text(folder_ / "job.toml", endless_job()); }
  TemporaryFolder folder_;
};

TEST_P(Interrupt, StopsAndKeepsTheRecord) {
  const auto& [fabric, signal, reach] = GetParam();
  Subprocess process(
      {"train", "job.toml", "--out", "run", "--json", "--set", "cluster.fabric=" + fabric},
      {.folder = folder_.path()});
  ASSERT_TRUE(eventually([&] { return evaluations_in(folder_ / "run") > 1; }, 30)) << process.err();
  const std::vector<pid_t> nodes = children_of(process.pid());
  EXPECT_EQ(nodes.size(), fabric == "virtual" ? 1u : 4u);
  if (reach == Reach::kGroup)
    process.signal_group(signal);
  else
    process.signal(signal);
  const Ended ended = process.wait(kSoonS);
  EXPECT_FALSE(ended.late);
  EXPECT_EQ(ended.exit_code, kExitInterrupted) << ended.err;
  EXPECT_TRUE(has(ended.err, "interrupted")) << ended.err;
  EXPECT_FALSE(has(ended.err, "interrupted: interrupted\n")) << ended.err;
  EXPECT_EQ(times_in(ended.err, "tutti: stopping; a second signal ends it at once\n"), 1u)
      << "once, whoever was signalled: " << ended.err;
  for (const pid_t node : nodes) EXPECT_FALSE(is_alive(node)) << node;

  const auto record = nlohmann::json::parse(ended.out, nullptr, false);
  ASSERT_TRUE(record.is_object()) << ended.out;
  EXPECT_EQ(record["status"], "interrupted");
  EXPECT_EQ(record["exit_code"], kExitInterrupted);
  EXPECT_GT(record["steps"], 0);
  EXPECT_EQ(record["nodes"].size(), 4u) << "every node reports what it did";
  EXPECT_EQ(json_in(folder_ / "run/run.json"), record);
  // The series holds every step, the last one in full.
  const std::string series = content_of(folder_ / "run/series.csv");
  EXPECT_EQ(std::count(series.begin(), series.end(), '\n'),
            1 + record["nodes"][0]["steps"].get<int64_t>());
  EXPECT_TRUE(series.ends_with("\n"));
}

std::string case_name(const testing::TestParamInfo<Case>& test) {
  const auto& [fabric, signal, reach] = test.param;
  return fabric +
         (signal == SIGINT   ? "_SIGINT"
          : signal == SIGHUP ? "_SIGHUP"
                             : "_SIGTERM") +
         (reach == Reach::kGroup ? "_group" : "_launcher");
}
INSTANTIATE_TEST_SUITE_P(All, Interrupt,
                         testing::Combine(testing::Values("process", "virtual"),
                                          testing::Values(SIGINT, SIGTERM, SIGHUP),
                                          testing::Values(Reach::kLauncher, Reach::kGroup)),
                         case_name);

// A program that `nohup` started ignores a closed terminal, but can still be stopped.
TEST(HangUp, IsIgnoredWhereTheProgramWasStartedSo) {
  for (const std::string fabric : {"process", "virtual"}) {
    const TemporaryFolder folder;
    write_text(folder / "job.toml", endless_job());
    const auto before = signal(SIGHUP, SIG_IGN);  // children keep what is ignored
    Subprocess process(
        {"train", "job.toml", "--out", "run", "--quiet", "--set", "cluster.fabric=" + fabric},
        {.folder = folder.path()});
    signal(SIGHUP, before);
    ASSERT_TRUE(eventually([&] { return evaluations_in(folder / "run") > 1; }, 30))
        << process.err();
    process.signal_group(SIGHUP);
    const size_t so_far = evaluations_in(folder / "run");
    EXPECT_TRUE(eventually([&] { return evaluations_in(folder / "run") > so_far + 4; }, kSoonS))
        << fabric << ": " << process.err();
    process.signal_group(SIGINT);
    EXPECT_EQ(process.wait(kSoonS).exit_code, kExitInterrupted) << fabric;
  }
}

// At any moment of the start: while libraries load, while nodes come up.
TEST(InterruptEarly, StopsCleanlyWheneverItComes) {
  for (const std::string fabric : {"process", "virtual"})
    for (const int delay_ms : {30, 100, 200, 400}) {
      const TemporaryFolder folder;
      write_text(folder / "job.toml", endless_job());
      Subprocess process(
          {"train", "job.toml", "--out", "run", "--quiet", "--set", "cluster.fabric=" + fabric},
          {.folder = folder.path()});
      // From here on the program handles signals; before, they end it as they end any program.
      ASSERT_TRUE(eventually([&] { return std::filesystem::exists(folder / "run/job.toml"); }, 30));
      std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
      process.signal_group(SIGINT);
      const Ended ended = process.wait(kSoonS);
      EXPECT_FALSE(ended.late);
      EXPECT_EQ(ended.exit_code, kExitInterrupted) << fabric << delay_ms << ended.err;
      EXPECT_FALSE(has(ended.err, "stopping")) << "it is to be quiet: " << ended.err;
      EXPECT_EQ(json_in(folder / "run/run.json").value("status", ""), "interrupted");
    }
}

// It is killed after 10 s, which is no loss of a peer: the run was interrupted, and keeps its
// record.
TEST(InterruptLate, AWorkerThatDoesNotReactChangesNothing) {
  const TemporaryFolder folder;
  write_text(folder / "job.toml", endless_job());
  Subprocess process(
      {"train", "job.toml", "--out", "run", "--json", "--set", "cluster.fabric=process"},
      {.folder = folder.path()});
  ASSERT_TRUE(eventually([&] { return evaluations_in(folder / "run") > 1; }, 30)) << process.err();
  const std::vector<pid_t> nodes = children_of(process.pid());
  ASSERT_EQ(nodes.size(), 4u);
  kill(nodes.back(), SIGSTOP);  // as if it computed for long
  process.signal(SIGINT);
  const Ended ended = process.wait(20);
  EXPECT_FALSE(ended.late);
  EXPECT_EQ(ended.exit_code, kExitInterrupted) << ended.err;
  for (const pid_t node : nodes) EXPECT_FALSE(is_alive(node)) << node;
  const auto record = nlohmann::json::parse(ended.out, nullptr, false);
  ASSERT_TRUE(record.is_object()) << ended.out;
  EXPECT_EQ(record["status"], "interrupted");
  EXPECT_EQ(record["exit_code"], kExitInterrupted);
  EXPECT_EQ(record["nodes"].size(), 3u) << "of those who could say what they did";
  EXPECT_EQ(json_in(folder / "run/run.json"), record);
}

// Who reads progress in JSON gets nothing between its objects.
TEST(InterruptEarly, SaysNothingToPrograms) {
  const TemporaryFolder folder;
  write_text(folder / "job.toml", endless_job());
  Subprocess process({"train", "job.toml", "--out", "run", "--progress", "json"},
                     {.folder = folder.path()});
  ASSERT_TRUE(eventually([&] { return evaluations_in(folder / "run") > 1; }, 30)) << process.err();
  process.signal_group(SIGINT);
  const Ended ended = process.wait(kSoonS);
  EXPECT_EQ(ended.exit_code, kExitInterrupted) << ended.err;
  EXPECT_FALSE(has(ended.err, "stopping")) << ended.err;
}

// A pipe without room for a single byte, and nobody who reads it.
class FullPipe {
 public:
  FullPipe() {
    EXPECT_EQ(pipe2(ends_, O_CLOEXEC | O_NONBLOCK), 0);
    const std::string block(4096, 'x');
    while (write(ends_[1], block.data(), block.size()) > 0) {
    }
    fcntl(ends_[1], F_SETFL, 0);  // from here on who writes waits
  }
  ~FullPipe() {
    close(ends_[0]);
    close(ends_[1]);
  }
  FullPipe(const FullPipe&) = delete;
  FullPipe& operator=(const FullPipe&) = delete;
  int fd() const { return ends_[1]; }

 private:
  int ends_[2] = {-1, -1};
};

// Commands that have nothing to keep end at the first signal, wherever they are: here they wait for
// somebody to read what they print.
TEST(InterruptEarly, EndsCommandsThatKeepNothingAtOnce) {
  const TemporaryFolder folder;
  write_text(folder / "job.toml", small_job());
  for (const Arguments& arguments : {Arguments{"check", "job.toml"}, Arguments{"list", "settings"}})
    for (const int signal : {SIGINT, SIGTERM}) {
      const FullPipe pipe;
      Subprocess process(arguments, {.folder = folder.path(), .out = pipe.fd()});
      const std::string state = "/proc/" + std::to_string(process.pid()) + "/syscall";
      const std::string writing = std::to_string(SYS_write) + " 0x1 ";
      ASSERT_TRUE(eventually([&] { return content_of(state).starts_with(writing); }, 30))
          << content_of(state);
      process.signal(signal);
      const Ended ended = process.wait(kSoonS);
      EXPECT_FALSE(ended.late) << arguments[0];
      EXPECT_EQ(ended.exit_code, kExitInterrupted) << ended.err;
      EXPECT_EQ(ended.err, "");
    }
}

// Each stage of a start looks at the wish to stop before it begins: reading data, what follows it.
TEST(InterruptEarly, StartsNoNodesForARunThatIsToStop) {
  const std::atomic<bool> stop{true};
  for (const std::string fabric : {"process", "virtual"}) {
    Job job = parse_job(endless_job(), "test");
    job.cluster.fabric = value_of(fabric, job.cluster.fabric);
    EXPECT_THROW(launch(job, {.out = "", .keep_files = false}, stop), InterruptedError);
    const RunRecord record = launch(resolve(job), {.out = "", .keep_files = false}, stop);
    EXPECT_EQ(record.status, RunStatus::kInterrupted);
    EXPECT_EQ(record.exit_code, kExitInterrupted);
    EXPECT_TRUE(has(record.error, "before anything was started")) << record.error;
    EXPECT_EQ(record.outcomes.size(), 4u);
  }
}

// Two programs that write one run would mix its files, so the second must not touch those of the
// first.
TEST(RunFolder, IsWrittenByOneRunAtATime) {
  TemporaryFolder folder;
  write_text(folder / "endless.toml", endless_job());
  const Arguments train = {"train", "endless.toml", "--out", "run", "--quiet"};
  Subprocess first(train, {.folder = folder.path()});
  ASSERT_TRUE(eventually([&] { return evaluations_in(folder / "run") > 0; }, 30));
  const Ended second = run_tutti(train, {.folder = folder.path()});
  EXPECT_EQ(second.exit_code, kExitBadJob);
  EXPECT_TRUE(has(second.err, "run: another tutti is at work in it")) << second.err;
  EXPECT_TRUE(std::filesystem::exists(folder / "run/node-0.log"));
  first.signal(SIGINT);
  EXPECT_EQ(first.wait(kSoonS).exit_code, kExitInterrupted);
  EXPECT_EQ(json_in(folder / "run/run.json")["status"], "interrupted");
  EXPECT_GT(evaluations_in(folder / "run"), 0u);
}

}  // namespace
}  // namespace tutti
