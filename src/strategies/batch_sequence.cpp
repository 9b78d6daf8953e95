#include "strategies/batch_sequence.h"

#include <algorithm>

namespace tutti {

BatchSequence::BatchSequence(const TaskConfig& task, const OptimizerConfig& optimizer,
                             size_t training, Batches& batches, TrainingProgress& progress,
                             Pace pace)
    : task_(task),
      training_(static_cast<int64_t>(training)),
      batches_(batches),
      progress_(progress),
      pace_(pace),
      timetable_(task, optimizer, training, pace) {
  begin_epoch();
}

// At a free pace a fast worker goes through its share more often than the task has epochs.
void BatchSequence::begin_epoch() {
  if (pace_ == Pace::kLockstep && over()) return;
  const int64_t epoch = progress_.epoch;
  batches_.begin_epoch(epoch, timetable_.global_batch(std::min(epoch, task_.epochs - 1)));
}

double BatchSequence::rate() const {
  return timetable_.rate_at(std::min(progress_.epochs, static_cast<double>(task_.epochs)));
}

void BatchSequence::count_epochs() {
  progress_.epochs = static_cast<double>(likely_) / static_cast<double>(training_);
}

void BatchSequence::set_samples(int64_t known, int64_t likely) {
  progress_.samples = known;
  likely_ = std::max(known, likely);
  count_epochs();
}

void BatchSequence::advance(int64_t samples) {
  ++progress_.steps;
  progress_.samples += samples;
  likely_ += samples;
  progress_.epochs = timetable_.epochs_before(progress_.epoch, ++progress_.step);
  if (progress_.step == batches_.steps()) {
    ++progress_.epoch;
    progress_.step = 0;
    begin_epoch();
  }
  if (pace_ == Pace::kFree) count_epochs();
}

bool BatchSequence::over() const {
  if (pace_ == Pace::kLockstep)
    return progress_.step >= timetable_.steps(progress_.epoch) ||
           progress_.epoch >= timetable_.epochs();
  const int64_t all = task_.epochs * training_;
  return likely_ >=
         (task_.max_steps > 0 ? std::min(all, task_.max_steps * task_.global_batch) : all);
}

int64_t BatchSequence::followers() const {
  const int64_t count = timetable_.steps(progress_.epoch) - 1 - progress_.step;
  TrainingProgress ahead = progress_;
  for (int64_t i = 0; i < count; ++i) {
    ahead.epochs = timetable_.epochs_before(progress_.epoch, progress_.step + i + 1);
    if (ahead.is_due()) return i;
  }
  return count;
}

}  // namespace tutti
