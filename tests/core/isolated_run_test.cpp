// Work in child processes: results in order, errors by name, stops that reach everybody.
#include "core/isolated_run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "core/error.h"

namespace tutti {
namespace {

const std::atomic<bool> never{false};

std::string failure_of(const IsolatedWork& work) {
  try {
    run_isolated("test", work, never);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(IsolatedRun, ReturnsWhatTheChildReturns) {
  const std::string large(1 << 20, 'x');  // more than a pipe holds
  EXPECT_EQ(run_isolated(
                "test", [&](const auto&) { return large; }, never),
            large);
}

TEST(IsolatedRun, NamesWhatWentWrong) {
  EXPECT_EQ(failure_of([](const auto&) -> std::string { throw Error("no luck"); }),
            "test failed: no luck");
  EXPECT_EQ(failure_of([](const auto&) -> std::string { _exit(0); }),
            "the test ended without a result");
  EXPECT_NE(failure_of([](const auto&) -> std::string {
              raise(SIGKILL);
              return "";
            }).find("died from signal 9"),
            std::string::npos);
}

TEST(IsolatedRun, SideBySideKeepsTheOrder) {
  std::vector<IsolatedWork> works;
  for (int i = 0; i < 9; ++i)
    works.push_back([i](const auto&) {
      usleep(static_cast<useconds_t>(1000 * (9 - i)));  // later ones are done sooner
      return std::to_string(i);
    });
  std::vector<size_t> begun;
  const auto results = run_side_by_side(
      "test", works, [&](size_t i) { begun.push_back(i); }, never);
  for (size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i], std::to_string(i));
  EXPECT_EQ(begun, (std::vector<size_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(IsolatedRun, AFailureEndsTheOthers) {
  const std::vector<IsolatedWork> works = {
      [](const auto&) -> std::string { throw Error("no luck"); },
      [](const auto&) {
        pause();  // for ever
        return std::string();
      }};
  EXPECT_THROW(run_side_by_side(
                   "test", works, [](size_t) {}, never),
               Error);
}

TEST(IsolatedRun, AStopReachesEveryChild) {
  std::atomic<bool> stop{false};
  const IsolatedWork patient = [](const std::atomic<bool>& raised) -> std::string {
    while (!raised) usleep(1000);
    throw InterruptedError();
  };
  const auto raise_stop = [&](size_t i) { stop = i == 2; };
  EXPECT_THROW(run_side_by_side("test",
                                {[](const auto&) { return std::string("done"); },
                                 [](const auto&) { return std::string("done"); }, patient, patient},
                                raise_stop, stop),
               InterruptedError);
}

// What ends decides what begins: each result that is even has a successor.
TEST(IsolatedRun, AQueueGrowsWhileItRuns) {
  std::vector<int> waiting = {0, 1, 2};
  std::vector<int> begun, ended;
  const WorkQueue queue{.next = [&]() -> std::optional<IsolatedWork> {
                          if (waiting.empty()) return std::nullopt;
                          const int number = waiting.back();
                          waiting.pop_back();
                          begun.push_back(number);
                          return [number](const auto&) { return std::to_string(number); };
                        },
                        .ended =
                            [&](size_t i, const std::string& result) {
                              EXPECT_EQ(result, std::to_string(begun[i]));
                              ended.push_back(begun[i]);
                              if (begun[i] % 2 == 0 && begun[i] < 10)
                                waiting.push_back(begun[i] + 10);
                            },
                        .goes_on = [] { return true; }};
  run_queue("test", queue, never);
  std::sort(ended.begin(), ended.end());
  EXPECT_EQ(ended, (std::vector<int>{0, 1, 2, 10, 12}));
}

// Nobody waits for what still runs then.
TEST(IsolatedRun, AQueueThatIsOverEndsItsWorks) {
  bool given = false, looked = false;
  const WorkQueue queue{.next = [&]() -> std::optional<IsolatedWork> {
                          if (given) return std::nullopt;
                          given = true;
                          return [](const auto&) -> std::string {
                            sleep(1000);
                            return "";
                          };
                        },
                        .ended = [](size_t, const std::string&) { FAIL() << "it cannot end"; },
                        .goes_on = [&] { return !std::exchange(looked, given); }};
  run_queue("test", queue, never);
  EXPECT_TRUE(given);
}

}  // namespace
}  // namespace tutti
