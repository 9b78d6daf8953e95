// What a node writes down while it trains: a row per step, a row per evaluation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace tutti {

struct StepRow {
  int64_t step = 0;
  double time_s = 0;  // since the training clock started
  double loss = 0;    // mean over this node's share of the batch
  double rate = 0;
  int64_t samples = 0;  // of all workers, so far
};

struct EvaluationRow {
  int64_t step = 0;
  double time_s = 0;
  double epoch = 0;
  double loss = 0;
  double quality = 0;  // accuracy, or mean squared error
};

class Recorder {
 public:
  using OnStep = std::function<void(const StepRow&)>;
  using OnEvaluation = std::function<void(const EvaluationRow&)>;
  Recorder() = default;
  Recorder(OnStep on_step, OnEvaluation on_evaluation)
      : on_step_(std::move(on_step)), on_evaluation_(std::move(on_evaluation)) {}

  void step(const StepRow& row) {
    steps_.push_back(row);
    if (on_step_) on_step_(row);
  }
  void evaluation(const EvaluationRow& row) {
    evaluations_.push_back(row);
    if (on_evaluation_) on_evaluation_(row);
  }
  // How many updates were missing from the parameters a gradient was computed on.
  void staleness(double updates) {
    staleness_sum_ += updates;
    staleness_max_ = std::max(staleness_max_, updates);
    ++staleness_count_;
  }

  const std::vector<StepRow>& steps() const { return steps_; }
  const std::vector<EvaluationRow>& evaluations() const { return evaluations_; }
  double staleness_mean() const {
    return staleness_count_ ? staleness_sum_ / static_cast<double>(staleness_count_) : 0;
  }
  double staleness_max() const { return staleness_max_; }

 private:
  OnStep on_step_;
  OnEvaluation on_evaluation_;
  std::vector<StepRow> steps_;
  std::vector<EvaluationRow> evaluations_;
  double staleness_sum_ = 0;
  double staleness_max_ = 0;
  int64_t staleness_count_ = 0;
};

}  // namespace tutti
