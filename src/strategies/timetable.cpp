#include "strategies/timetable.h"

#include <algorithm>

namespace tutti {

Timetable::Timetable(const TaskConfig& task, const OptimizerConfig& optimizer, size_t samples,
                     Pace pace)
    : schedule_(optimizer, task.global_batch, task.epochs),
      samples_(static_cast<int64_t>(samples)),
      epochs_(task.epochs) {
  if (task.max_steps == 0 || samples == 0) return;
  if (pace == Pace::kLockstep)
    end_after(task.max_steps);
  else
    schedule_.end_at(static_cast<double>(task.max_steps * task.global_batch) /
                     static_cast<double>(samples));
}

// Only epochs that begin are counted: a job may name a million epochs and stop in the second.
void Timetable::end_after(int64_t max_steps) {
  int64_t epoch = 0;
  int64_t left = max_steps;
  for (; epoch < epochs_ && left > 0; ++epoch) {
    last_steps_ = std::min(left, all_steps(epoch));
    left -= last_steps_;
  }
  epochs_ = epoch;
  schedule_.end_at(epochs_before(epochs_ - 1, last_steps_));
}

int64_t Timetable::all_steps(int64_t epoch) const {
  const int64_t batch = schedule_.global_batch(epoch);
  return samples_ / batch + (samples_ % batch != 0 ? 1 : 0);
}

int64_t Timetable::steps(int64_t epoch) const {
  if (epoch + 1 < epochs_ || last_steps_ == 0) return all_steps(epoch);
  return epoch < epochs_ ? last_steps_ : 0;
}

int64_t Timetable::count(int64_t epoch, int64_t step) const {
  const int64_t batch = schedule_.global_batch(epoch);
  return std::clamp<int64_t>(samples_ - step * batch, 1, batch);
}

int64_t Timetable::number(int64_t epoch, int64_t step) const {
  for (int64_t e = 0; e < epoch; ++e) step += all_steps(e);
  return step;
}

int64_t Timetable::left_from(int64_t epoch, int64_t step, int64_t most) const {
  int64_t left = -step;
  for (; epoch < epochs_ && left < most; ++epoch) left += steps(epoch);
  return std::clamp<int64_t>(left, 0, most);
}

double Timetable::epochs_before(int64_t epoch, int64_t step) const {
  return static_cast<double>(epoch) +
         static_cast<double>(step) / static_cast<double>(all_steps(epoch));
}

// Epochs may have different batch sizes, so the steps of each are weighted by its own number of
// steps.
double Timetable::epochs_covered(int64_t epoch, int64_t step, int64_t steps) const {
  double sum = 0;
  for (; steps > 0; --epoch) {
    const int64_t here = epoch > 0 ? std::min(steps, step + 1) : steps;
    sum += static_cast<double>(here) / static_cast<double>(all_steps(epoch));
    steps -= here;
    if (epoch > 0) step = all_steps(epoch - 1) - 1;
  }
  return sum;
}

double Timetable::weight(int64_t epoch, int64_t step, int64_t samples) const {
  return static_cast<double>(samples) / static_cast<double>(count(epoch, step));
}

}  // namespace tutti
