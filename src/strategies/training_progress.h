// How far training has come: the books that every strategy keeps, whatever its steps are. A plain
// value: written down in the middle of a run and read back, it says the same from then on.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>

#include "core/archive.h"
#include "strategies/evaluation.h"
#include "strategies/recorder.h"
#include "strategies/task.h"

namespace tutti {

struct TrainingProgress {
  TrainingProgress() = default;
  explicit TrainingProgress(const TaskConfig& task) : next_evaluation(task.eval_every) {}

  // Taken so far: of the run, or of this worker where each has a pace of its own. Not whole where
  // workers take a batch in parts.
  double steps = 0;
  int64_t samples = 0;          // that all workers have trained on, as far as is known here
  double epochs = 0;            // passes over the training samples
  int64_t epoch = 0, step = 0;  // of the batch that comes next, where batches come in their order
  double next_evaluation = 0;   // in epochs
  int64_t target_reached = 0;   // 1: by the last measurement

  int64_t whole_steps() const { return std::lround(steps); }
  bool is_due() const;  // quality is to be measured now
  // Begins an evaluation, records the row that `make_row` measures, and ends it. Returns true when
  // training ends because the target is reached.
  bool evaluate(const TaskConfig& task, bool classification, Recorder& recorder,
                const std::function<EvaluationRow()>& make_row);
  // The same in two parts, for who goes on meanwhile. It is being measured: the next time is due
  // later.
  void begin_evaluation(const TaskConfig& task);
  // What was measured is worse or better than the target.
  void end_evaluation(const TaskConfig& task, bool classification, double quality);
  bool ends_at_target(const TaskConfig& task) const {
    return task.stop_at_target && target_reached != 0;
  }

  StepRow step_row(double time_s, double loss, double rate, int64_t share = 0) const;
  EvaluationRow evaluation_row(double time_s, const Quality& quality) const;

  void archive(Archive& archive) {
    archive(steps, samples, epochs, epoch, step, next_evaluation, target_reached);
  }
  bool operator==(const TrainingProgress&) const = default;
};

}  // namespace tutti
