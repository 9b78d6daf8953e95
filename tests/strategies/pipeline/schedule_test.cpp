// Schedules against the textbook, for all numbers of micro-batches and stages up to 16.
#include "strategies/pipeline/schedule.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <string>
#include <tuple>

namespace tutti {
namespace {

constexpr size_t kMost = 16;

PipelineSchedule named(std::string_view name) {
  return value_of(name, PipelineSchedule::kSequential);
}

std::vector<std::vector<StageTask>> all_nodes(std::string_view name, const PipelineShape& shape) {
  std::vector<std::vector<StageTask>> tasks;
  for (size_t node = 0; node < shape.nodes; ++node)
    tasks.push_back(schedule_tasks(named(name), shape, node));
  return tasks;
}

// Every pass takes one clock and every message none.
double clocks(std::string_view name, const PipelineShape& shape) {
  const std::vector<StageTimes> times(shape.stages);
  return time_of(shape, all_nodes(name, shape), times);
}

// Every pass once, on the node of its stage, backward after forward, micro-batches in order.
void expect_legal(std::string_view name, const PipelineShape& shape) {
  for (size_t node = 0; node < shape.nodes; ++node) {
    const std::vector<StageTask> tasks = schedule_tasks(named(name), shape, node);
    ASSERT_EQ(tasks.size(), 2 * shape.chunks() * shape.micro_batches);
    std::vector<size_t> forward(shape.stages), backward(shape.stages);
    for (const StageTask& task : tasks) {
      ASSERT_LT(task.stage, shape.stages);
      ASSERT_EQ(task.stage % shape.nodes, node);
      size_t& next = (task.backward ? backward : forward)[task.stage];
      ASSERT_EQ(task.micro_batch, next) << name;
      ++next;
      ASSERT_LE(backward[task.stage], forward[task.stage]);
    }
  }
}

class Flat : public testing::TestWithParam<std::string> {};

TEST_P(Flat, IsLegalAndEnds) {
  for (size_t p = 1; p <= kMost; ++p)
    for (size_t m = 1; m <= kMost; ++m) {
      const PipelineShape shape{.nodes = p, .stages = p, .micro_batches = m};
      expect_legal(GetParam(), shape);
      EXPECT_NO_THROW(clocks(GetParam(), shape));
    }
}

INSTANTIATE_TEST_SUITE_P(Schedules, Flat, testing::Values("sequential", "gpipe", "1f1b"),
                         [](const auto& test) { return "is_" + test.param; });

TEST(Schedules, TakeTwiceMPlusPMinusOneClocks) {
  for (size_t p = 1; p <= kMost; ++p)
    for (size_t m = 1; m <= kMost; ++m) {
      const PipelineShape shape{.nodes = p, .stages = p, .micro_batches = m};
      EXPECT_EQ(clocks("gpipe", shape), 2 * (m + p - 1)) << m << ", " << p;
      EXPECT_EQ(clocks("1f1b", shape), 2 * (m + p - 1)) << m << ", " << p;
      EXPECT_EQ(clocks("sequential", shape), 2 * m * p) << m << ", " << p;
    }
}

TEST(Schedules, HoldNoMoreMicroBatchesThanTheyShould) {
  for (size_t p = 1; p <= kMost; ++p)
    for (size_t m = 1; m <= kMost; ++m) {
      const PipelineShape shape{.nodes = p, .stages = p, .micro_batches = m};
      for (size_t s = 0; s < p; ++s) {
        EXPECT_EQ(most_in_flight(schedule_tasks(PipelineSchedule::kGpipe, shape, s), s), m);
        EXPECT_EQ(most_in_flight(schedule_tasks(PipelineSchedule::k1f1b, shape, s), s),
                  std::min(m, p - s));
        EXPECT_EQ(most_in_flight(schedule_tasks(PipelineSchedule::kSequential, shape, s), s), 1U);
      }
    }
}

// v stages on each node make a pass 1/v as long: 2 (m v + p - 1) clocks, a bubble 1/v as large.
TEST(Schedules, InterleavedShortensTheBubble) {
  for (size_t p = 2; p <= kMost; ++p)
    for (size_t v = 2; v <= 4; ++v)
      for (size_t m = p; m <= 3 * p; m += p) {
        const PipelineShape shape{.nodes = p, .stages = p * v, .micro_batches = m};
        expect_legal("interleaved", shape);
        EXPECT_EQ(clocks("interleaved", shape), 2 * (m * v + p - 1)) << m << ", " << p << ", " << v;
      }
}

TEST(Schedules, SequentialTakesSeveralStagesOnANode) {
  const PipelineShape shape{.nodes = 3, .stages = 6, .micro_batches = 5};
  expect_legal("sequential", shape);
  EXPECT_EQ(clocks("sequential", shape), 2 * 5 * 6);
}

// A balanced pipeline is idle for (p - 1) / (m + p - 1) of the time; messages make it longer.
TEST(Schedules, TimesOfPassesAndMessagesCount) {
  const PipelineShape shape{.nodes = 4, .stages = 4, .micro_batches = 8};
  std::vector<StageTimes> times(4, {.forward_s = 1, .backward_s = 2});
  EXPECT_DOUBLE_EQ(time_of(shape, all_nodes("1f1b", shape), times), 3.0 * (8 + 4 - 1));
  times.assign(4, {.forward_s = 1, .backward_s = 2, .transfer_s = 0.5});
  EXPECT_GE(time_of(shape, all_nodes("1f1b", shape), times), 3.0 * (8 + 4 - 1) + 2 * 3 * 0.5);
  // The slowest stage sets the pace.
  times.assign(4, {.forward_s = 1, .backward_s = 2});
  times[2] = {.forward_s = 10, .backward_s = 20};
  EXPECT_GE(time_of(shape, all_nodes("1f1b", shape), times), 8 * 30.0);
}

// Every stage on one to three nodes: each micro-batch passes each stage once, both ways, nobody
// waits forever, and with equal work for each node a copy more makes the whole faster.
TEST(Schedules, CopiesOfAStageTakeMicroBatchesInTurn) {
  for (size_t a = 1; a <= 3; ++a)
    for (size_t b = 1; b <= 3; ++b)
      for (size_t c = 1; c <= 3; ++c)
        for (size_t m = 1; m <= kMost; ++m)
          for (const char* name : {"gpipe", "1f1b"}) {
            const PipelineShape shape{
                .nodes = a + b + c, .stages = 3, .micro_batches = m, .copies = {a, b, c}};
            std::vector<std::vector<StageTask>> tasks;
            std::set<std::tuple<bool, size_t, size_t>> seen;
            for (size_t node = 0; node < shape.nodes; ++node) {
              tasks.push_back(own_tasks(named(name), shape, node));
              for (const StageTask& t : tasks.back()) {
                EXPECT_EQ(t.stage, shape.stages_of(node).front());
                EXPECT_TRUE(seen.insert({t.backward, t.stage, t.micro_batch}).second);
              }
            }
            EXPECT_EQ(seen.size(), 2 * 3 * m);
            ASSERT_NO_THROW(time_of(shape, tasks, std::vector<StageTimes>(3))) << name << m;
          }
  // Two copies of a stage that takes twice as long: it keeps up with the others.
  const PipelineShape two{.nodes = 3, .stages = 2, .micro_batches = 16, .copies = {2, 1}};
  const PipelineShape one{.nodes = 2, .stages = 2, .micro_batches = 16};
  const std::vector<StageTimes> times = {{.forward_s = 2, .backward_s = 2}, {}};
  std::vector<std::vector<StageTask>> tasks;
  for (size_t node = 0; node < 3; ++node)
    tasks.push_back(own_tasks(PipelineSchedule::k1f1b, two, node));
  EXPECT_LE(time_of(two, tasks, times), 2.0 * 16 + 8);
  EXPECT_GE(time_of(one, all_nodes("1f1b", one), times), 4.0 * 16);
  EXPECT_EQ(most_in_flight(tasks[0], 0), 2U);
}

TEST(Schedules, WaitingForeverIsFound) {
  const PipelineShape shape{.nodes = 2, .stages = 2, .micro_batches = 1};
  const std::vector<StageTimes> times(2);
  auto tasks = all_nodes("1f1b", shape);
  std::swap(tasks[0][0], tasks[0][1]);
  EXPECT_THROW(time_of(shape, tasks, times), std::logic_error);
}

TEST(Schedules, ForwardPassesAloneGoThroughOnceEach) {
  for (const size_t chunks : {1U, 3U})
    for (size_t m = 1; m <= 9; ++m) {
      const PipelineShape shape{.nodes = 4, .stages = 4 * chunks, .micro_batches = m};
      std::vector<std::vector<StageTask>> tasks;
      std::set<std::pair<size_t, size_t>> seen;
      for (size_t node = 0; node < 4; ++node) {
        tasks.push_back(forward_tasks(shape, node));
        for (const StageTask& task : tasks.back()) {
          EXPECT_FALSE(task.backward);
          EXPECT_TRUE(seen.insert({task.stage, task.micro_batch}).second);
        }
      }
      EXPECT_EQ(seen.size(), m * shape.stages);
      const std::vector<StageTimes> times(shape.stages);
      EXPECT_NO_THROW(time_of(shape, tasks, times));
    }
}

}  // namespace
}  // namespace tutti
