// The books of a run as a value: written down after any step and read back, all that follows is as
// if nothing had happened.
#include "strategies/training_progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "strategies/batch_sequence.h"

namespace tutti {
namespace {

constexpr size_t kTraining = 103;  // no batch divides it
constexpr int64_t kWorker = 1, kWorkers = 3;

// All that a strategy sees of its place in the run, before and after a step.
struct Seen {
  double rate = 0;
  int64_t count = 0, followers = 0;
  std::vector<uint32_t> samples;
  TrainingProgress after;
  EvaluationRow measured;
  bool operator==(const Seen& other) const {
    return rate == other.rate && count == other.count && followers == other.followers &&
           samples == other.samples && after == other.after &&
           measured.step == other.measured.step && measured.epoch == other.measured.epoch &&
           measured.samples == other.measured.samples;
  }
};

class Training {
 public:
  Training(const TaskConfig& task, const OptimizerConfig& optimizer, Pace pace,
           const TrainingProgress& progress)
      : task_(task), pace_(pace), progress_(progress), optimizer_(optimizer) {
    std::iota(train_.begin(), train_.end(), 0u);
    sequence_.emplace(task_, optimizer_, kTraining, batches_, progress_, pace);
  }

  bool over() const { return sequence_->over() || progress_.ends_at_target(task_); }
  const TrainingProgress& progress() const { return progress_; }

  Seen step() {
    Seen seen;
    seen.rate = sequence_->rate();
    seen.count = sequence_->count();
    if (pace_ == Pace::kLockstep) seen.followers = sequence_->followers();
    const auto share = batches_.share(progress_.step, kWorker);
    seen.samples.assign(share.begin(), share.end());
    const auto own = static_cast<int64_t>(share.size());
    sequence_->advance(pace_ == Pace::kLockstep ? sequence_->count() : own);
    if (pace_ == Pace::kFree) {
      const int64_t of_both = progress_.samples + own;  // another worker trained on as much
      sequence_->set_samples(of_both, of_both);
    }
    if (over() || progress_.is_due()) {
      progress_.evaluate(task_, true, recorder_, [&] {
        seen.measured = progress_.evaluation_row(0, {.loss = 0, .quality = progress_.epochs / 10});
        return seen.measured;
      });
    }
    seen.after = progress_;
    return seen;
  }

 private:
  TaskConfig task_;
  Pace pace_;
  TrainingProgress progress_;
  Recorder recorder_;
  OptimizerConfig optimizer_;
  std::vector<uint32_t> train_ = std::vector<uint32_t>(kTraining);
  Batches batches_{train_, Partition::kReshuffle, kWorkers, 7};
  std::optional<BatchSequence> sequence_;
};

struct Case {
  const char* name;
  Pace pace = Pace::kLockstep;
  ScheduleKind schedule = ScheduleKind::kCosine;
  int64_t max_steps = 0;
  double target = 0;
};

class Progress : public testing::TestWithParam<Case> {
 protected:
  Progress() {
    task_.global_batch = 10;
    task_.epochs = 4;
    task_.eval_every = 0.3;
    task_.max_steps = GetParam().max_steps;
    task_.target = GetParam().target;
    task_.stop_at_target = GetParam().target > 0;
    optimizer_.schedule.kind = GetParam().schedule;
    optimizer_.schedule.warmup_epochs = 0.5;
  }
  Training begin(const TrainingProgress& progress) const {
    return {task_, optimizer_, GetParam().pace, progress};
  }
  TaskConfig task_;
  OptimizerConfig optimizer_;
};

std::vector<Seen> rest_of(Training& training) {
  std::vector<Seen> seen;
  while (!training.over()) seen.push_back(training.step());
  return seen;
}

TEST_P(Progress, GoesOnWhereItWasWrittenDown) {
  Training whole = begin(TrainingProgress(task_));
  const std::vector<Seen> expected = rest_of(whole);
  ASSERT_GT(expected.size(), 10u);
  Training first = begin(TrainingProgress(task_));
  for (size_t taken = 0; taken < expected.size(); ++taken) {
    TrainingProgress here = first.progress(), read;
    Archive writing;
    writing(here);
    const std::vector<std::byte> bytes = writing.take();
    Archive reading(bytes);
    reading(read);
    EXPECT_TRUE(reading.exhausted());
    EXPECT_EQ(read, here);
    Training resumed = begin(read);
    const std::vector<Seen> rest = rest_of(resumed);
    EXPECT_TRUE(std::equal(rest.begin(), rest.end(),
                           expected.begin() + static_cast<std::ptrdiff_t>(taken), expected.end()))
        << "after " << taken << " steps";
    first.step();
  }
}

TEST_P(Progress, EndsWhereItsTaskSays) {
  Training whole = begin(TrainingProgress(task_));
  const TrainingProgress last = rest_of(whole).back().after;
  if (task_.stop_at_target)
    EXPECT_EQ(last.target_reached, 1);
  else if (task_.max_steps > 0 && GetParam().pace == Pace::kLockstep)
    EXPECT_EQ(last.whole_steps(), task_.max_steps);
  else if (GetParam().pace == Pace::kLockstep)
    EXPECT_EQ(last.samples, task_.epochs * static_cast<int64_t>(kTraining));
  else
    EXPECT_GE(last.samples, task_.max_steps * task_.global_batch);
}

INSTANTIATE_TEST_SUITE_P(
    All, Progress,
    testing::Values(Case{.name = "cosine"},
                    Case{.name = "growing", .schedule = ScheduleKind::kGrowBatch},
                    Case{.name = "steps", .max_steps = 22}, Case{.name = "target", .target = 0.25},
                    Case{.name = "free", .pace = Pace::kFree},
                    Case{.name = "free_steps", .pace = Pace::kFree, .max_steps = 17}),
    [](const auto& test) { return test.param.name; });

// Epochs and rates end where the steps do, in the middle of an epoch or after it.
TEST(Timetable, EndsWhereTheStepsOfTheTaskDo) {
  TaskConfig task;
  task.global_batch = 128;
  task.epochs = 8;
  OptimizerConfig optimizer;
  optimizer.lr = 0.2;
  optimizer.schedule.kind = ScheduleKind::kCosine;
  struct {
    int64_t max_steps, epochs, last_steps;
    double end;
  } const cases[] = {{0, 8, 4, 8}, {10, 3, 2, 2.5}, {12, 3, 4, 3}, {1000, 8, 4, 8}};
  for (const auto& [max_steps, epochs, last_steps, end] : cases) {
    task.max_steps = max_steps;
    const Timetable table(task, optimizer, 500);  // 4 steps an epoch
    EXPECT_EQ(table.epochs(), epochs) << max_steps;
    EXPECT_EQ(table.steps(epochs - 1), last_steps) << max_steps;
    EXPECT_NEAR(table.rate_at(end / 2), 0.1, 1e-12) << max_steps;
    EXPECT_NEAR(table.rate_at(end), 0, 1e-12) << max_steps;
  }
}

}  // namespace
}  // namespace tutti
