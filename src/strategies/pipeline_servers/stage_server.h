// A server of a pipeline: it has the parameters of some stages and the state of their optimizers.
// In each step it adds up the gradients of a stage's nodes, takes the step, and sends the result.
#pragma once

#include <memory>
#include <vector>

#include "collectives/sum.h"
#include "core/bytes.h"
#include "strategies/pipeline/placement.h"
#include "strategies/step_loop.h"

namespace tutti {

class StageServer : public StepTaker {
 public:
  StageServer(Context& context, const Placement& placement, const PipelineConfig& config);

  StepLoss take_step(const Batches& batches, const StepAhead& next) override;
  Quality validate(Tag tag) override;
  void finish_sends();  // at the end of the run

 private:
  // The parameters of a stage, and who computes with them.
  struct Served {
    size_t stage = 0;
    std::vector<Rank> holders;
    Layout layout{0};
    std::unique_ptr<Optimizer> optimizer;
    Buffer<float> parameters, rounded;
    std::vector<Sum> gradients;             // by holder
    std::vector<Handle> arriving, leaving;  // last: cancelled first
  };
  Served serve(const Architecture& whole, const Placement& placement, size_t stage);
  double hear_loss(uint64_t step);
  void expect(Served& served, uint64_t step);
  void await(Served& served);
  std::span<const float> sum(Served& served);
  void update(Served& served, double rate);
  void send(Served& served, uint64_t step);
  void finish_sends(Served& served);

  Context& context_;
  Rank speaker_;  // tells losses and measurements
  bool exact_;
  std::vector<Served> served_;
};

}  // namespace tutti
