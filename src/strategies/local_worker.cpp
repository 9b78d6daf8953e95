#include "strategies/local_worker.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "strategies/compute.h"

namespace tutti {

LocalWorker::LocalWorker(Context& context, const Timetable& timetable)
    : context_(context),
      batches_(context.data.splits.train, context.task.partition, context.cluster.workers,
               context.task.seed,
               // Where only costs count the order does not matter, but for whose rows are touched.
               context.arithmetic().is_done() || context.model.architecture().row_width > 0),
      timetable_(timetable) {}

void LocalWorker::turn_to(int64_t epoch) {
  if (epoch == epoch_) return;
  batches_.begin_epoch(epoch, timetable_.global_batch(epoch));
  epoch_ = epoch;
}

std::span<const uint32_t> LocalWorker::samples_of(const Place& place) {
  turn_to(place.epoch);
  return context_.task.partition == Partition::kGlobal
             ? batches_.lane(place.step, place.part, place.parts)
             : batches_.share(place.step, place.part);
}

std::span<const uint32_t> LocalWorker::lane_of(const Place& place, size_t lane) {
  turn_to(place.epoch);
  return batches_.lane(place.step, static_cast<int64_t>(lane), context_.task.lanes);
}

int64_t LocalWorker::count_of(const Place& place) {
  turn_to(place.epoch);
  return batches_.count(place.step);
}

int64_t LocalWorker::samples_in(const Place& place) {
  return static_cast<int64_t>(samples_of(place).size());
}

double LocalWorker::compute(std::span<const uint32_t> samples, uint64_t step_number, float scale,
                            const Model::Ready& ready) {
  batch_.step = step_number;
  gather(context_, samples, batch_);
  const double loss = compute_gradient(context_, batch_, scale, ready, late_);
  if (!std::isfinite(loss)) throw diverged_at(step_number);
  return loss;
}

LocalWorker::Result LocalWorker::gradient(const Place& place, uint64_t step_number,
                                          const Model::Ready& ready) {
  context_.node.clock().begin_step();
  const auto samples = samples_of(place);
  Result result;
  result.samples = static_cast<int64_t>(samples.size());
  result.count = batches_.count(place.step);
  const double loss = compute(samples, step_number, 1.0f / static_cast<float>(result.count), ready);
  result.loss = samples.empty() ? 0 : loss / static_cast<double>(samples.size());
  return result;
}

LocalWorker::Result LocalWorker::exact_gradient(const Place& place, uint64_t step_number,
                                                GradientSum& sum) {
  context_.node.clock().begin_step();
  turn_to(place.epoch);
  const Range lanes = part_of(static_cast<size_t>(context_.task.lanes),
                              static_cast<size_t>(place.parts), static_cast<size_t>(place.part));
  sum.clear();
  Result result;
  result.count = batches_.count(place.step);
  const auto scale = 1.0f / static_cast<float>(result.count);
  for (size_t lane = lanes.begin; lane < lanes.end; ++lane) {
    const auto samples = batches_.lane(place.step, static_cast<int64_t>(lane), context_.task.lanes);
    if (samples.empty()) continue;
    result.loss += compute(samples, step_number, scale, [](Range) {});
    result.samples += static_cast<int64_t>(samples.size());
    sum.add();
  }
  if (result.samples > 0) result.loss /= static_cast<double>(result.samples);
  return result;
}

}  // namespace tutti
