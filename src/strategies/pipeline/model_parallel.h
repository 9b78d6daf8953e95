// What pipeline, tensor and hybrid share: a model spread over nodes by layers, by parts of layers
// and in copies. They differ in the settings that lead there.
#pragma once

#include "strategies/pipeline/config.h"
#include "strategies/pipeline/placement.h"

namespace tutti {

// Who has which part of the model, with the settings that say how it is trained.
struct PipelinePlan : PlanDetail {
  PipelinePlan(PipelineConfig settings, Placement places)
      : config(std::move(settings)), placement(std::move(places)) {}
  PipelineConfig config;
  Placement placement;
};

// Copies and replicas need samples of their own. Nodes of different stages and shards share them.
int64_t least_parts(const PipelineConfig& config);
// Throws ConfigError when a part of the gradient is not enough for the optimizer.
void check_optimizer(const PipelineConfig& config, const OptimizerConfig& optimizer);
// Spreads the model over the workers of a plan that was begun, and says what each has and sends.
void place_model(Plan& plan, const PipelineConfig& config, const PlanInput& input);

class ModelParallel : public Strategy {
 public:
  Plan plan(const PlanInput& input) const override;
  NodeResult run(Context& context) const override;

 protected:
  // The settings with what follows from the cluster.
  virtual PipelineConfig resolved(const ClusterConfig&) const { return config_; }
  // Throws ConfigError naming the settings that contradict each other.
  virtual void check(const TaskConfig& task, const ClusterConfig& cluster) const = 0;

  PipelineConfig config_;
};

}  // namespace tutti
