// Findings of `tutti bench advise`: what was advised of each strategy, what its trainings really
// took, and how well the advice would have served.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace tutti {

// One strategy for one task on one network.
struct AdvisedTraining {
  std::string name;
  // Until the target, and by the steps that it took: each has its share of the evaluations.
  double predicted_s = 0, predicted_step_s = 0, error = 0;
  // Medians over the seeds; of the time over those that reached the target.
  std::optional<double> measured_s, measured_step_s;
  int seeds = 0, reached = 0;
  double first_step_s = 0;  // more than others, which counts in none of these times
  double bytes_per_s = 0;   // that all nodes sent together while they trained
  std::string left_out;     // why

  bool counts() const { return left_out.empty() && measured_s.has_value(); }
};

// How the predicted times order what was measured.
struct Order {
  int pairs = 0, right = 0;  // those whose measured times differ enough to matter
  double tau() const;        // Kendall's, over them; 1 without any
};
Order order_of(const std::vector<AdvisedTraining>& trainings);

// How much longer the strategy took that was predicted to be the fastest than the one that was;
// nothing when none counts.
std::optional<double> regret_of(const std::vector<AdvisedTraining>& trainings);

class AdviceStudy {
 public:
  // All strategies for one task on one network, and what describes both.
  void add(const std::string& task, double bits_per_s, const nlohmann::json& conditions,
           const std::vector<AdvisedTraining>& trainings);
  // The record of it, with the same in words on standard output unless `quiet`.
  nlohmann::json summary(bool quiet) const;

 private:
  nlohmann::json questions_ = nlohmann::json::array();
  std::vector<double> step_errors_, time_errors_, regrets_;
  int pairs_ = 0, right_ = 0, first_right_ = 0, left_out_ = 0, within_ = 0;
};

}  // namespace tutti
