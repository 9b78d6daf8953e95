// One stage, or a shard of it, on its node: forward and backward passes of micro-batches, with what
// they wait for and what they pass on, and the sum of their gradients.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "models/stage.h"
#include "strategies/evaluation.h"
#include "strategies/pipeline/placement.h"
#include "strategies/pipeline/shard_sums.h"
#include "strategies/pipeline/stage_update.h"
#include "strategies/pipeline/stream.h"
#include "strategies/pipeline/weight_stash.h"

namespace tutti {

// The micro-batches of one pass through the pipeline. Asynchronously they are the batches of
// consecutive steps.
struct PassPlan {
  std::vector<std::span<const uint32_t>> samples;  // of each micro-batch; some may have none
  uint64_t step = 0;                               // the first, if there are several
  float scale = 1;                                 // of the loss
  bool training = true;
};

class StageWorker {
 public:
  StageWorker(Context& context, const Placement& placement, const PipelineConfig& config,
              const MakeStageUpdate& make_update, size_t replica, size_t node, size_t stage,
              size_t shard);

  void begin(const PassPlan& plan);
  void forward(size_t micro_batch);
  void backward(size_t micro_batch);
  void end();  // waits until everything is sent

  bool is_first() const { return stage_ == 0; }
  bool is_last() const { return stage_ + 1 == placement_.stages.size(); }
  double take_loss() { return std::exchange(loss_, 0); }      // the last stage: since the last call
  const EvaluationSums& evaluation() const { return sums_; }  // the last stage: of this pass

  // What the gradient of the batch leads to (stage_update.h).
  void share_gradient() { update_->share(gradient_, plan_.step); }
  void update(double rate);
  // Asynchronously: updates and time since the forward pass of the micro-batch that went back last.
  void date(Applied& update) const;

  StageModel& model() { return *model_; }
  size_t stage() const { return stage_; }

 private:
  std::span<const uint32_t> samples(size_t micro_batch) const;
  size_t slot_of(size_t micro_batch) const { return micro_batch % in_flight_; }
  // Where the stash has the weights of a micro-batch.
  size_t weights_slot(size_t micro_batch) const;
  void stash_weights(size_t slot);
  std::unique_ptr<WeightStash::Borrowed> borrow(size_t micro_batch);
  size_t forward_slot(size_t micro_batch) const;
  size_t backward_slot(size_t micro_batch) const;
  void gather(size_t micro_batch);
  std::span<const float> compute_forward(size_t model_slot, size_t micro_batch);
  float scale_of(size_t micro_batch) const;
  void charge_pass(Work work);
  void measure(size_t micro_batch);
  void shift_statistics(size_t micro_batch, float sign);
  std::span<const float> compute_backward(size_t micro_batch, std::span<float> slope);
  void send(Handle& handle, Rank to, Purpose purpose, size_t stage, std::span<const float> values);
  void finish_send(Handle& handle, const char* what, size_t micro_batch);
  // The copies of another stage, and the one that takes or gives a micro-batch.
  std::vector<Rank> ranks_of(size_t stage) const;
  Rank rank_of(size_t stage, size_t micro_batch) const;
  Inbox& below() { return plan_.training ? *below_ : *evaluation_below_; }

  Context& context_;
  const Placement& placement_;
  size_t replica_, stage_, shard_;
  bool recompute_;
  bool vertical_;                      // all stages use the version that the first one has
  std::unique_ptr<ShardSums> shards_;  // where others have parts of the same layers
  std::unique_ptr<StageModel> model_;
  size_t in_flight_;
  std::vector<Range> statistics_;
  GradientSum gradient_;
  std::unique_ptr<StageUpdate> update_;
  std::optional<WeightStash> stash_;  // where updates come between forward and backward
  std::vector<double> read_s_;        // by slot of the stash: when its weights were read
  size_t updates_ = 0;                // in this pass
  size_t returned_slot_ = 0;          // of the stash, for the micro-batch that went back last
  int64_t missed_ = 0;                // its updates
  PassPlan plan_;
  double loss_ = 0;
  EvaluationSums sums_;
  std::vector<Batch> batches_;            // by slot
  std::vector<std::span<float>> inputs_;  // by slot
  std::optional<Inbox> below_, above_, evaluation_below_;
  std::vector<Handle> forward_sends_, backward_sends_;  // by slot of the model; cancelled first
};

}  // namespace tutti
