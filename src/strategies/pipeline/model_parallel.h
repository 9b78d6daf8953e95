// What pipeline, tensor and hybrid share: a model spread over nodes by layers, by parts of layers
// and in copies. They differ in the settings that lead there.
#pragma once

#include "strategies/pipeline/config.h"

namespace tutti {

class ModelParallel : public Strategy {
 public:
  void validate_optimizer(const OptimizerConfig& optimizer) const override;
  void validate_plan(const Plan& plan) const override;
  std::vector<std::string> explain(const Plan& plan) const override;
  std::string plan_in_words(const Plan& plan) const override;
  void settle(const Plan& plan, ClusterConfig& cluster) override;
  int64_t least_parts(const ClusterConfig& cluster) const override;
  std::string equivalence(const TaskConfig& task) const override;
  std::vector<Range> layers_of(const Plan& plan, Rank worker) const override;
  StepCost step_cost(const Plan& plan) const override;
  double memory_bytes(const Plan& plan) const override;
  std::vector<double> memory_by_worker(const Plan& plan) const override;
  void run(Context& context) const override;

 protected:
  // The settings with what follows from the cluster.
  virtual PipelineConfig resolved(const ClusterConfig&) const { return config_; }

  PipelineConfig config_;
};

}  // namespace tutti
