// When rounds end and quality is measured, alike for workers and scheduler, and the parts of the
// tags of what they tell each other.
#pragma once

#include <algorithm>
#include <cstdint>

#include "fabric/tag.h"
#include "strategies/training_progress.h"

namespace tutti {

// Of purpose kControl.
enum class RoundPart : uint64_t { kPick, kChange, kGoOn };
inline Tag round_tag(uint64_t round, RoundPart part) {
  return {Purpose::kControl, Tag::wrapped(round), part};
}

// A place of a round that is not filled.
inline constexpr uint32_t kNoCoordinate = UINT32_MAX;

// Where coordinates are updated at once that belong together, the objective soon leaves every
// bound. Before that, parameters would overflow.
inline bool has_diverged(double objective, double at_first) {
  return !(objective <= 1e6 * at_first + 1e-300);
}

class RoundPlan {
 public:
  // Of samples with so many coordinates. The task has to outlive it.
  RoundPlan(const TaskConfig& task, size_t samples, size_t coordinates, size_t parallel)
      : each_(std::min(parallel, coordinates)),
        coordinates_(coordinates),
        samples_(samples),
        task_(task),
        total_(task.epochs * static_cast<int64_t>((coordinates + each_ - 1) / each_)) {
    if (task.max_steps > 0) total_ = std::min(total_, task.max_steps);
  }

  int64_t total() const { return total_; }
  size_t parallel() const { return each_; }
  // Passes over the coordinates, and with them over the data, after so many rounds.
  double epochs(int64_t rounds) const {
    return static_cast<double>(rounds) * static_cast<double>(each_) /
           static_cast<double>(coordinates_);
  }
  // So many rounds are done; true when quality is to be measured now.
  bool advance(TrainingProgress& progress, int64_t rounds) const {
    progress.steps = static_cast<double>(rounds);
    progress.epochs = epochs(rounds);
    progress.samples = static_cast<int64_t>(progress.epochs * static_cast<double>(samples_));
    if (rounds < total_ && !progress.is_due()) return false;
    progress.begin_evaluation(task_);
    return true;
  }

 private:
  size_t each_, coordinates_, samples_;
  const TaskConfig& task_;
  int64_t total_;
};

}  // namespace tutti
