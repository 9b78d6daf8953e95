#include "strategies/parameter_server/timetable.h"

#include <algorithm>

namespace tutti::parameter_server {

Timetable::Timetable(const TaskConfig& task, const OptimizerConfig& optimizer, size_t samples)
    : schedule_(optimizer, task.global_batch, task.epochs),
      samples_(static_cast<int64_t>(samples)),
      epochs_(task.epochs) {
  schedule_.end_after(task.max_steps, samples);
  if (task.max_steps == 0) return;
  // Only epochs that begin are counted: a job may name a million epochs and stop in the second.
  int64_t epoch = 0;
  int64_t left = task.max_steps;
  for (; epoch < epochs_ && left > 0; ++epoch) {
    last_steps_ = std::min(left, all_steps(epoch));
    left -= last_steps_;
  }
  epochs_ = epoch;
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

double Timetable::rate(const Hand& hand) const {
  return schedule_.rate(static_cast<double>(hand.epoch) +
                        static_cast<double>(hand.step) /
                            static_cast<double>(all_steps(hand.epoch)));
}

Hand Timetable::normal(Hand hand) const {
  for (; hand.epoch < epochs_ && hand.step >= steps(hand.epoch); ++hand.epoch)
    hand.step -= static_cast<int32_t>(steps(hand.epoch));
  return hand;
}

int64_t Timetable::left_from(const Hand& hand, int64_t most) const {
  int64_t left = -hand.step;
  for (int64_t epoch = hand.epoch; epoch < epochs_ && left < most; ++epoch) left += steps(epoch);
  return std::clamp<int64_t>(left, 0, most);
}

// Epochs may have different batch sizes, so the steps of each are weighted by its own number of
// steps.
double Timetable::progress(const Hand& hand, int64_t steps) const {
  double sum = 0;
  int64_t last = hand.step;
  for (int64_t epoch = hand.epoch; steps > 0; --epoch) {
    const int64_t here = epoch > 0 ? std::min(steps, last + 1) : steps;
    sum += static_cast<double>(here) / static_cast<double>(all_steps(epoch));
    steps -= here;
    if (epoch > 0) last = all_steps(epoch - 1) - 1;
  }
  return sum / static_cast<double>(hand.parts);
}

double Timetable::weight(const Hand& hand, int64_t samples) const {
  return static_cast<double>(samples) / static_cast<double>(count(hand.epoch, hand.step));
}

}  // namespace tutti::parameter_server
