// One node's part in training an early-exit network and in measuring it.
#pragma once

#include <memory>
#include <vector>

#include "strategies/early_exit/exit_node.h"
#include "strategies/step_loop.h"

namespace tutti {

class EarlyExitTrainer : public StepTaker {
 public:
  EarlyExitTrainer(Context& context, Tiers tiers, const EarlyExitConfig& config);

  StepLoss take_step(const Batches& batches, const StepAhead& next) override;
  // Accuracy with samples leaving early; chooses the thresholds if the settings leave them open.
  Quality validate(Tag tag) override;
  // Brings all parameters to rank 0, where those of the exits become the attachment of the run.
  Attachment gather_parameters();
  // Accuracy on the test samples, each of which goes as far as it must. Rank 0 knows it, and leaves
  // figures of it in its record.
  double test();

 private:
  void share_sums(EvaluationSums& sums, Tag tag);
  double report(const std::vector<double>& figures);

  Context& context_;
  const Tiers tiers_;
  const EarlyExitConfig& config_;
  std::unique_ptr<ExitNode> node_;
  std::vector<double> thresholds_;
};

}  // namespace tutti
