// The batches of a run, one after the other, as its progress says: epochs, learning rates, the end.
// With a progress that was read back it goes on where that was written down.
#pragma once

#include "data/batches.h"
#include "strategies/timetable.h"
#include "strategies/training_progress.h"

namespace tutti {

class BatchSequence {
 public:
  // All of these have to outlive it. `training`: samples.
  BatchSequence(const TaskConfig& task, const OptimizerConfig& optimizer, size_t training,
                Batches& batches, TrainingProgress& progress, Pace pace = Pace::kLockstep);

  const Batches& batches() const { return batches_; }
  int64_t count() const { return batches_.count(progress_.step); }  // samples of the next batch
  double rate() const;                                              // likewise
  // The next batch was trained on: by all, or at a free pace by this worker.
  void advance(int64_t samples);
  // At a free pace: what all have trained on, as far as is known, and what it likely is by now. The
  // latter says when to measure and when to end.
  void set_samples(int64_t known, int64_t likely);
  int64_t likely_samples() const { return likely_; }
  bool over() const;  // the epochs or the steps of the task are done
  // How many of the batches after the next one come before anything is measured, in this epoch.
  int64_t followers() const;

 private:
  void begin_epoch();
  void count_epochs();

  const TaskConfig& task_;
  const int64_t training_;
  Batches& batches_;
  TrainingProgress& progress_;
  const Pace pace_;
  int64_t likely_ = 0;
  Timetable timetable_;
};

}  // namespace tutti
