// A worker's rows of the record. A step is complete, and its row is written, with the next reply:
// only then it is known how many samples all workers have used.
#pragma once

#include <optional>

#include "strategies/local_worker.h"
#include "strategies/strategy.h"

namespace tutti::parameter_server {

class StepRows {
 public:
  explicit StepRows(Context& context)
      : context_(context), started_s_(context.node.clock().now()) {}

  void note(const LocalWorker::Result& result, double rate) {
    row_ = StepRow{
        .step = ++steps_, .loss = result.loss, .rate = rate, .samples = 0, .share = result.samples};
  }
  void record(int64_t samples) {
    if (!row_) return;
    row_->time_s = context_.node.clock().now() - started_s_;
    row_->samples = samples;
    context_.recorder.step(*row_);
    row_.reset();
  }

 private:
  Context& context_;
  double started_s_;
  int64_t steps_ = 0;  // that this worker took
  std::optional<StepRow> row_;
};

}  // namespace tutti::parameter_server
