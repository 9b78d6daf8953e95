// Exit code 130: Ctrl-C and SIGTERM stop a run soon, cleanly, and keep its record.
#include <gtest/gtest.h>

#include <filesystem>
#include <tuple>

#include "fabric/outcome.h"
#include "tests/support/proc.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;

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
  return fabric + (signal == SIGINT ? "_SIGINT" : "_SIGTERM") +
         (reach == Reach::kGroup ? "_group" : "_launcher");
}
INSTANTIATE_TEST_SUITE_P(All, Interrupt,
                         testing::Combine(testing::Values("process", "virtual"),
                                          testing::Values(SIGINT, SIGTERM),
                                          testing::Values(Reach::kLauncher, Reach::kGroup)),
                         case_name);

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
      EXPECT_EQ(json_in(folder / "run/run.json").value("status", ""), "interrupted");
    }
}

}  // namespace
}  // namespace tutti
