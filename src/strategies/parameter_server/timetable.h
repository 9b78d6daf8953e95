// The global batches of a run: how many, how large, at which rate.
#pragma once

#include "optimizers/optimizer.h"
#include "strategies/parameter_server/messages.h"
#include "strategies/task.h"

namespace tutti::parameter_server {

class Timetable {
 public:
  Timetable(const TaskConfig& task, const OptimizerConfig& optimizer, size_t samples);
  int64_t epochs() const { return epochs_; }  // those that begin before task.max_steps
  // Steps of an epoch that are taken: fewer than it has when task.max_steps ends the run in it.
  int64_t steps(int64_t epoch) const;
  int64_t count(int64_t epoch, int64_t step) const;   // samples of that batch
  int64_t number(int64_t epoch, int64_t step) const;  // of that step, counted over all epochs
  // Returns the same hand with its step inside its epoch, even if steps were added beyond the end.
  Hand normal(Hand hand) const;
  int64_t left_from(const Hand& hand, int64_t most) const;  // steps of the run from this one on
  double rate(const Hand& hand) const;                      // of its first step
  // Returns the epochs covered by one part of each of the last `steps` steps up to this one.
  double progress(const Hand& hand, int64_t steps) const;
  // How much of a global batch `samples` samples of that step are.
  double weight(const Hand& hand, int64_t samples) const;

 private:
  int64_t all_steps(int64_t epoch) const;
  Schedule schedule_;
  int64_t samples_, epochs_;
  int64_t last_steps_ = 0;  // of the last epoch if max_steps ends the run in it; else 0
};

}  // namespace tutti::parameter_server
