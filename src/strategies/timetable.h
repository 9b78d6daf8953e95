// The global batches of a run: how many, how large, at which rate. The one answer for those who
// take them in their order (batch_sequence.h) and for servers, who deal them to workers.
#pragma once

#include "core/schema.h"
#include "optimizers/optimizer.h"
#include "strategies/task.h"

namespace tutti {

// In lockstep every worker takes the same steps. At a free pace each goes through its own share, as
// often as it can, until all together have trained on as many samples as the task has.
enum class Pace { kLockstep, kFree };
constexpr auto words(Pace) { return WordList<2>{"sync", "async"}; }

class Timetable {
 public:
  // At a free pace task.max_steps limits the samples of the run, not its steps.
  Timetable(const TaskConfig& task, const OptimizerConfig& optimizer, size_t samples,
            Pace pace = Pace::kLockstep);

  int64_t epochs() const { return epochs_; }  // those that begin before task.max_steps
  int64_t global_batch(int64_t epoch) const { return schedule_.global_batch(epoch); }
  // Steps of an epoch that are taken: fewer than it has when task.max_steps ends the run in it.
  int64_t steps(int64_t epoch) const;
  int64_t count(int64_t epoch, int64_t step) const;   // samples of that batch
  int64_t number(int64_t epoch, int64_t step) const;  // of that step, counted over all epochs
  int64_t left_from(int64_t epoch, int64_t step, int64_t most) const;  // steps of the run
  // Returns how many epochs lie before that step, and which ones the `steps` steps up to it cover.
  double epochs_before(int64_t epoch, int64_t step) const;
  double epochs_covered(int64_t epoch, int64_t step, int64_t steps) const;
  double rate(int64_t epoch, int64_t step) const { return rate_at(epochs_before(epoch, step)); }
  double rate_at(double epochs) const { return schedule_.rate(epochs); }
  // How much of a global batch `samples` samples of that step are.
  double weight(int64_t epoch, int64_t step, int64_t samples) const;
  // Returns the same place with its step inside its epoch, even if steps were added beyond the end.
  template <class Place>
  Place normal(Place place) const {
    for (; place.epoch < epochs_ && place.step >= steps(place.epoch); ++place.epoch)
      place.step -= static_cast<decltype(place.step)>(steps(place.epoch));
    return place;
  }

 private:
  int64_t all_steps(int64_t epoch) const;
  void end_after(int64_t max_steps);
  Schedule schedule_;
  int64_t samples_, epochs_;
  int64_t last_steps_ = 0;  // of the last epoch if max_steps ends the run in it; else 0
};

}  // namespace tutti
