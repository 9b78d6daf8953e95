// How the gradient of a stage becomes its new parameters.
#pragma once

#include <functional>
#include <memory>

#include "models/stage.h"
#include "strategies/gradient_sum.h"
#include "strategies/pipeline/placement.h"

namespace tutti {

// In two parts: all stages of a node share their gradients before the first of them is updated.
class StageUpdate {
 public:
  virtual ~StageUpdate() = default;
  virtual void share(GradientSum& gradient, uint64_t step) = 0;
  // When it returns, the model has the parameters of the next step.
  virtual void update(GradientSum& gradient, double rate) = 0;
};

using MakeStageUpdate = std::function<std::unique_ptr<StageUpdate>(
    Context& context, const Placement& placement, const PipelineConfig& config, size_t stage,
    size_t shard, StageModel& model)>;

// Those that have the same parameters sum their gradients, and each of them takes the step.
std::unique_ptr<StageUpdate> make_own_update(Context& context, const Placement& placement,
                                             const PipelineConfig& config, size_t stage,
                                             size_t shard, StageModel& model);

}  // namespace tutti
