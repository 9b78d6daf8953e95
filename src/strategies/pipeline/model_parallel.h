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

 private:
  void check_optimizer(const OptimizerConfig& optimizer) const;
};

}  // namespace tutti
