// The training data by features: columns without their means, and what coordinate descent needs of
// them.
//
// With centred features and targets the bias drops out of the problem: it is the mean target minus
// the weights times the mean features.
#pragma once

#include <span>
#include <vector>

#include "core/range.h"
#include "data/dataset.h"

namespace tutti {

class Columns {
 public:
  // Those of the features in `range`, over these samples.
  Columns(const Dataset& dataset, std::span<const uint32_t> samples, Range range);

  size_t samples() const { return targets_.size(); }
  Range range() const { return range_; }
  std::span<const double> column(size_t feature) const;  // of the range
  double mean_square(size_t feature) const;              // |column|^2 / samples
  std::span<const double> targets() const { return targets_; }
  double dot(size_t feature, std::span<const double> values) const;
  // Of two features of the range, without sign; 0 where one of them is constant.
  double correlation(size_t a, size_t b) const;
  // The bias that goes with the weights of all features.
  double bias(std::span<const double> weights) const;

 private:
  Range range_;
  std::vector<double> means_;  // of all features
  double mean_target_ = 0;
  std::vector<double> targets_;
  std::vector<double> values_;  // column by column
  std::vector<double> mean_squares_;
};

// The weights with the least sum over samples of half the squared error / samples, plus
// l1 |w|_1 + l2/2 |w|^2.
struct Penalty {
  double l1 = 0, l2 = 0;
};
// The best value of one weight, all others staying: `slope` is column . residual / samples.
double best_weight(double weight, double slope, double mean_square, const Penalty& penalty);

// How far weights are from the optimum.
struct Optimality {
  double objective = 0;
  double gap = 0;        // duality gap: no weights are better by more than this
  double violation = 0;  // of the conditions on the gradient at an optimum, the largest
  size_t nonzero = 0;
};
// `slopes` are column . residual / samples of all features.
Optimality optimality_of(std::span<const double> weights, std::span<const double> slopes,
                         std::span<const double> residual, std::span<const double> targets,
                         const Penalty& penalty);

}  // namespace tutti
