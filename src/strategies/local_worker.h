// What a worker computes by itself, for strategies whose workers are not in step with each other:
// the gradient of any part of any global batch, in any order.
#pragma once

#include <functional>

#include "data/batches.h"
#include "strategies/gradient_sum.h"
#include "strategies/strategy.h"
#include "strategies/timetable.h"

namespace tutti {

class LateParameters;

class LocalWorker {
 public:
  LocalWorker(Context& context, const Timetable& timetable);  // both outlive it

  // Part `part` of `parts` of a step. With task.partition = "global" any number of parts will do;
  // otherwise part `part` is the share of worker `part`.
  struct Place {
    int64_t epoch = 0, step = 0;
    int64_t part = 0, parts = 1;
  };
  struct Result {
    double loss = 0;      // mean over its samples
    int64_t samples = 0;  // of this part
    int64_t count = 0;    // of the whole step
  };
  // model.gradients() becomes this part's share of the mean gradient of the step: the sum over all
  // parts is that mean. `step_number` decides dropout. Throws DivergedError.
  Result gradient(const Place& place, uint64_t step_number, const Model::Ready& ready);
  // The same in lanes that do not depend on the number of parts, added up exactly into `sum`.
  Result exact_gradient(const Place& place, uint64_t step_number, GradientSum& sum);

  // From now on parameters may still be on their way when a gradient is computed.
  void expect(LateParameters* late) { late_ = late; }

  int64_t samples_in(const Place& place);
  std::span<const uint32_t> samples_of(const Place& place);
  // One of the lanes of a step, which do not depend on its parts; and all of the step's samples.
  std::span<const uint32_t> lane_of(const Place& place, size_t lane);
  int64_t count_of(const Place& place);

 private:
  void turn_to(int64_t epoch);
  double compute(std::span<const uint32_t> samples, uint64_t step_number, float scale,
                 const Model::Ready& ready);

  Context& context_;
  Batches batches_;
  const Timetable& timetable_;
  Batch batch_;
  int64_t epoch_ = -1;
  LateParameters* late_ = nullptr;
};

}  // namespace tutti
