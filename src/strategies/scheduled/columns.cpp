#include "strategies/scheduled/columns.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace tutti {
namespace {

constexpr size_t kChunk = 256;

double dot_of(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Calls `use(row, features, target)` for each sample.
template <class Use>
void for_each_row(const Dataset& dataset, std::span<const uint32_t> samples, const Use& use) {
  Batch batch;
  for (size_t begin = 0; begin < samples.size(); begin += kChunk) {
    const auto part = samples.subspan(begin, std::min(kChunk, samples.size() - begin));
    dataset.gather(part, batch);
    const size_t width = batch.features.size() / part.size();
    for (size_t i = 0; i < part.size(); ++i)
      use(begin + i, std::span<const float>(batch.features).subspan(i * width, width),
          double{batch.targets[i]});
  }
}

}  // namespace

Columns::Columns(const Dataset& dataset, std::span<const uint32_t> samples, Range range)
    : range_(range), targets_(samples.size()) {
  TUTTI_CHECK(!samples.empty());
  const auto count = static_cast<double>(samples.size());
  for_each_row(dataset, samples, [&](size_t, std::span<const float> features, double target) {
    means_.resize(features.size());
    for (size_t j = 0; j < features.size(); ++j) means_[j] += double{features[j]};
    mean_target_ += target;
  });
  for (double& mean : means_) mean /= count;
  mean_target_ /= count;
  TUTTI_CHECK(range.end <= means_.size());
  values_.resize(range.size() * samples.size());
  for_each_row(dataset, samples, [&](size_t row, std::span<const float> features, double target) {
    targets_[row] = target - mean_target_;
    for (size_t j = range.begin; j < range.end; ++j)
      values_[(j - range.begin) * samples.size() + row] = double{features[j]} - means_[j];
  });
  for (size_t j = range.begin; j < range.end; ++j)
    mean_squares_.push_back(dot_of(column(j), column(j)) / count);
}

std::span<const double> Columns::column(size_t feature) const {
  return std::span(values_).subspan((feature - range_.begin) * samples(), samples());
}

double Columns::mean_square(size_t feature) const { return mean_squares_[feature - range_.begin]; }

double Columns::dot(size_t feature, std::span<const double> values) const {
  return dot_of(column(feature), values);
}

double Columns::correlation(size_t a, size_t b) const {
  const double squares = mean_square(a) * mean_square(b);
  if (squares <= 0) return 0;
  return std::abs(dot(a, column(b))) / static_cast<double>(samples()) / std::sqrt(squares);
}

double Columns::bias(std::span<const double> weights) const {
  return mean_target_ - dot_of(weights, means_);
}

double best_weight(double weight, double slope, double mean_square, const Penalty& penalty) {
  const double curvature = mean_square + penalty.l2;
  if (mean_square <= 0) return 0;  // a constant feature explains nothing
  const double wanted = slope + mean_square * weight;
  const double beyond = std::abs(wanted) - penalty.l1;
  return beyond > 0 ? std::copysign(beyond, wanted) / curvature : 0;
}

// The dual of the problem over n samples is the largest y.t - |t|^2 / 2 with |column . t| <= n l1.
// A multiple of the residual satisfies that; l2 counts as further rows, sqrt(n l2) for each weight
// with a target of 0 (Zou and Hastie, 2005).
Optimality optimality_of(std::span<const double> weights, std::span<const double> slopes,
                         std::span<const double> residual, std::span<const double> targets,
                         const Penalty& penalty) {
  const auto count = static_cast<double>(residual.size());
  Optimality result;
  double sizes = 0, steepest = 0;
  for (size_t j = 0; j < weights.size(); ++j) {
    const double slope = slopes[j] - penalty.l2 * weights[j];
    sizes += std::abs(weights[j]);
    steepest = std::max(steepest, std::abs(slope));
    if (weights[j] != 0) ++result.nonzero;
    result.violation = std::max(
        result.violation, weights[j] != 0 ? std::abs(slope - std::copysign(penalty.l1, weights[j]))
                                          : std::max(0.0, std::abs(slope) - penalty.l1));
  }
  const double squares = dot_of(residual, residual) + count * penalty.l2 * dot_of(weights, weights);
  result.objective = squares / 2 / count + penalty.l1 * sizes;
  const double scale = steepest > penalty.l1 ? penalty.l1 / steepest : 1;
  const double dual = scale * dot_of(targets, residual) - scale * scale * squares / 2;
  result.gap = std::max(0.0, result.objective - dual / count);
  return result;
}

}  // namespace tutti
