// What a worker has computed since its last push. Between pulls it goes on from steps of its own,
// and adds their gradients up for the next push.
#pragma once

#include <memory>
#include <span>

#include "core/bytes.h"
#include "strategies/local_worker.h"
#include "strategies/parameter_server/config.h"
#include "strategies/parameter_server/messages.h"

namespace tutti::parameter_server {

class AccruedGradients {
 public:
  AccruedGradients(Context& context, const Config& config);

  bool empty() const { return steps_ == 0; }
  // The gradient of one step, which is pushed as it is.
  void begin(const Hand& hand, int64_t samples);
  // Adds the model's gradient of this step, and takes the step by it.
  void add(const Hand& hand, const LocalWorker::Result& result, double rate);
  void clear() { steps_ = samples_ = 0; }  // it was pushed

  std::span<const float> sum() const { return sum_.span(); }
  void describe(Request& push) const;  // what of

  // The parameters that were just read lack what this worker and the others are about to push.
  // Running statistics go most of their way to the data in so many steps: from where they were read
  // they would go that way twice, and swing around the data for long. The worker takes its own
  // unpushed part for that of everybody and starts from where the servers will be.
  void foresee_statistics(Range read);

 private:
  void step_alone(const LocalWorker::Result& result, double rate);

  Context& context_;
  Buffer<float> sum_;
  Layout layout_;
  std::unique_ptr<Optimizer> optimizer_;  // for steps on its own copy
  Hand hand_;
  int64_t steps_ = 0, samples_ = 0;
};

}  // namespace tutti::parameter_server
