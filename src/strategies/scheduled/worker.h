// A worker of coordinate descent: it has the columns of some features and their weights, and the
// residual of all samples.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "collectives/all_reduce.h"
#include "collectives/exact_sum.h"
#include "core/bytes.h"
#include "strategies/evaluation.h"
#include "strategies/scheduled/columns.h"
#include "strategies/scheduled/config.h"
#include "strategies/scheduled/rounds.h"
#include "strategies/training_progress.h"

namespace tutti {

class CoordinateWorker {
 public:
  CoordinateWorker(Context& context, const ScheduledConfig& config);
  void run();

 private:
  void receive_picks(uint64_t round);
  void update_own();
  double update_weight(uint32_t j);
  void sum_changes(uint64_t round);
  void tell_scheduler(uint64_t round);
  double objective() const;
  void record();
  bool measure();
  Optimality exchange_weights(uint64_t rounds);

  Context& context_;
  const ScheduledConfig& config_;
  size_t samples_;
  std::vector<double> weights_;  // of all features; between measurements only own ones are kept
  Range own_;                    // features
  RoundPlan plan_;
  Penalty penalty_;
  std::optional<Columns> columns_;
  std::vector<double> residual_;    // the same on every worker
  double sizes_ = 0, squares_ = 0;  // |w|_1 and |w|^2 over all features
  double first_objective_ = 0;
  std::vector<uint32_t> picked_;
  std::vector<double> deltas_;  // of the own picked ones
  // What a round adds to the fit of each sample, to |w|_1 and to |w|^2.
  std::vector<double> change_;
  std::vector<float> rounded_;  // deterministic: the terms of one coordinate
  std::vector<ExactSum> exact_change_;
  std::vector<double> gathered_;  // weights and slopes of all features
  std::unique_ptr<AllReduce> change_sum_, gather_;
  TrainingProgress progress_;  // its steps are rounds
  double started_s_ = 0;
  double near_optimum_ = -1;  // rounds
};

}  // namespace tutti
