// Coordinate descent's arithmetic against closed forms.
#include "strategies/scheduled/columns.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "data/table.h"

namespace tutti {
namespace {

// Columns +-1 of a Hadamard matrix without the constant one: orthogonal, mean 0.
constexpr size_t kRows = 8, kFeatures = 7;
std::shared_ptr<const Dataset> hadamard(const std::vector<float>& targets) {
  std::vector<float> features;
  for (size_t row = 0; row < kRows; ++row)
    for (size_t j = 1; j <= kFeatures; ++j)
      features.push_back(__builtin_popcountll(row & j) % 2 ? -1.0F : 1.0F);
  Answers answers;
  answers.targets = targets;
  return make_table({kFeatures}, features, answers);
}

const std::vector<float> kTargets = {3, -1, 4, 1, -5, 9, 2, -6};

std::vector<uint32_t> all_rows() {
  std::vector<uint32_t> rows(kRows);
  std::iota(rows.begin(), rows.end(), 0U);
  return rows;
}

TEST(BestWeight, SoftThresholds) {
  EXPECT_EQ(best_weight(0, 3, 1, {.l1 = 1, .l2 = 0}), 2);
  EXPECT_EQ(best_weight(0, -3, 2, {.l1 = 1, .l2 = 0}), -1);
  EXPECT_EQ(best_weight(0, 0.5, 1, {.l1 = 1, .l2 = 0}), 0);
  EXPECT_EQ(best_weight(5, -5, 1, {.l1 = 1, .l2 = 0}), 0) << "what is there counts, too";
  EXPECT_EQ(best_weight(0, 3, 1, {.l1 = 1, .l2 = 3}), 0.5);
  EXPECT_EQ(best_weight(7, 3, 0, {.l1 = 1, .l2 = 0}), 0) << "a constant feature";
}

TEST(Columns, AreCentredAndKnowTheBias) {
  std::vector<float> features = {1, 10, 2, 10, 6, 10};
  Answers answers;
  answers.targets = {1, 2, 6};
  const auto table = make_table({2}, features, answers);
  const std::vector<uint32_t> rows = {0, 1, 2};
  const Columns columns(*table, rows, {0, 2});
  EXPECT_EQ(std::vector<double>(columns.column(0).begin(), columns.column(0).end()),
            (std::vector<double>{-2, -1, 3}));
  EXPECT_EQ(std::vector<double>(columns.targets().begin(), columns.targets().end()),
            (std::vector<double>{-2, -1, 3}));
  EXPECT_EQ(columns.mean_square(1), 0);
  EXPECT_EQ(columns.correlation(0, 1), 0) << "a constant feature";
  EXPECT_DOUBLE_EQ(columns.correlation(0, 0), 1);
  EXPECT_EQ(columns.bias(std::vector<double>{2, 1}), 3 - 2 * 3 - 10);
}

// Orthogonal features: the optimum is the soft threshold of each product, all at once.
TEST(Optimality, IsReachedExactlyByOneRoundOnOrthogonalFeatures) {
  const auto table = hadamard(kTargets);
  const Columns columns(*table, all_rows(), {0, kFeatures});
  const Penalty penalty{.l1 = 0.5, .l2 = 1};
  std::vector<double> residual(columns.targets().begin(), columns.targets().end());
  const std::vector<double> start = residual;
  std::vector<double> weights(kFeatures), slopes(kFeatures);
  for (size_t j = 0; j < kFeatures; ++j) {
    weights[j] = best_weight(0, columns.dot(j, start) / kRows, columns.mean_square(j), penalty);
    for (size_t i = 0; i < kRows; ++i) residual[i] -= weights[j] * columns.column(j)[i];
  }
  for (size_t j = 0; j < kFeatures; ++j) slopes[j] = columns.dot(j, residual) / kRows;
  const Optimality found = optimality_of(weights, slopes, residual, columns.targets(), penalty);
  // Sums of a few small dyadic numbers: nothing is rounded but the scale of the dual.
  EXPECT_EQ(found.violation, 0);
  EXPECT_NEAR(found.gap, 0, 1e-14);
  EXPECT_GT(found.nonzero, 0u);
  EXPECT_LT(found.nonzero, kFeatures);
}

// No weights are better than those given by more than the gap: here against the optimum above.
TEST(Optimality, GapBoundsTheDistanceFromTheOptimum) {
  const auto table = hadamard(kTargets);
  const Columns columns(*table, all_rows(), {0, kFeatures});
  for (const Penalty penalty : {Penalty{0.5, 0}, Penalty{0.5, 0.25}, Penalty{2, 0}}) {
    const auto measured = [&](double shrink) {
      std::vector<double> residual(columns.targets().begin(), columns.targets().end());
      std::vector<double> weights(kFeatures), slopes(kFeatures);
      for (size_t j = 0; j < kFeatures; ++j)
        weights[j] = shrink * best_weight(0, columns.dot(j, columns.targets()) / kRows,
                                          columns.mean_square(j), penalty);
      for (size_t j = 0; j < kFeatures; ++j)
        for (size_t i = 0; i < kRows; ++i) residual[i] -= weights[j] * columns.column(j)[i];
      for (size_t j = 0; j < kFeatures; ++j) slopes[j] = columns.dot(j, residual) / kRows;
      return optimality_of(weights, slopes, residual, columns.targets(), penalty);
    };
    const double best = measured(1).objective;
    for (const double shrink : {0.0, 0.5, 0.9, 1.5}) {
      const Optimality found = measured(shrink);
      EXPECT_GE(found.gap, found.objective - best - 1e-14) << shrink;
      EXPECT_GE(found.objective, best);
    }
  }
}

}  // namespace
}  // namespace tutti
