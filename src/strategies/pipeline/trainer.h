// One node's part in a pipeline: its stages, in the order of the schedule.
#pragma once

#include <memory>
#include <vector>

#include "strategies/pipeline/stage_worker.h"
#include "strategies/step_loop.h"

namespace tutti {

class PipelineTrainer : public StepTaker {
 public:
  // What a pipeline does with others than its stages.
  struct Outside {
    MakeStageUpdate make_update = make_own_update;
    std::vector<Rank> listeners = {};  // who are told losses and measurements, too
  };
  PipelineTrainer(Context& context, const Placement& placement, const PipelineConfig& config,
                  Outside outside);
  PipelineTrainer(Context& context, const Placement& placement, const PipelineConfig& config)
      : PipelineTrainer(context, placement, config, Outside{}) {}
  // The tag of the message that tells a listener the loss of a step. Measurements have that which
  // validate() is given.
  static Tag loss_tag(uint64_t step);

  StepLoss take_step(const Batches& batches, const StepAhead& next) override;
  void date(Applied& update) const override { workers_.front()->date(update); }
  Quality validate(Tag tag) override;
  // Brings all parameters to rank 0, with how busy the nodes were.
  void gather();

 private:
  StageWorker& worker(size_t stage) {
    return *workers_[placement_.copies.empty() ? stage / placement_.nodes : 0];
  }
  size_t pass_batch(const Batches& batches, const StepAhead& next);
  size_t pass_on(const Batches& batches, const StepAhead& next);
  void run(const std::vector<StageTask>& tasks, const PassPlan& plan);
  bool has_last_stage() const;
  bool counts_samples() const;
  double share_loss(uint64_t step);
  void share_sums(EvaluationSums& sums, Tag tag);
  void tell_listeners(Tag tag, std::span<const std::byte> bytes);
  double busy_s() const;
  // With the last stage, and all others of this replica that compute the same shard.
  std::vector<Rank> last_ranks() const;
  std::vector<Rank> ranks_before_last() const;
  void gather_stage(size_t stage);
  void gather_shards(size_t stage);
  void report_stages();

  Context& context_;
  const Placement& placement_;
  Outside outside_;
  size_t replica_, node_, shard_;
  std::vector<StageTask> tasks_;
  std::vector<std::unique_ptr<StageWorker>> workers_;  // one for each stage of this node
  double busy_s_ = 0, steps_s_ = 0;                    // within steps
  // Asynchronously: the batches until the next measurement, of which some are on their way.
  PassPlan under_way_;
  size_t sent_ = 0, returned_ = 0;
};

}  // namespace tutti
