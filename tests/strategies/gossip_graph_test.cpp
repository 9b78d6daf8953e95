// Mixing matrices: doubly stochastic for every graph and size, consistent between sender and
// receiver, and spectral gaps against their closed forms.
#include "strategies/gossip/graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tutti {
namespace {

using Matrix = std::vector<std::vector<double>>;

Matrix matrix(const GraphEntry& graph, size_t n, uint64_t round) {
  Matrix w(n, std::vector<double>(n));
  for (size_t i = 0; i < n; ++i) {
    const Mixing mixing = graph.mixing(n, i, round, 7);
    w[i][i] = mixing.own;
    for (const Mixing::Edge& edge : mixing.from) {
      EXPECT_NE(edge.worker, i);
      EXPECT_EQ(w[i][edge.worker], 0) << "named twice";
      w[i][edge.worker] = edge.weight;
    }
  }
  return w;
}

bool has(const GraphEntry& graph, size_t n) { return graph.name != "torus" || torus_rows(n) > 1; }

class EveryGraph : public testing::TestWithParam<GraphEntry> {};

TEST_P(EveryGraph, IsDoublyStochastic) {
  for (size_t n = 1; n <= 16; ++n)
    for (uint64_t round = 0; round < 8 && has(GetParam(), n); ++round) {
      const Matrix w = matrix(GetParam(), n, round);
      for (size_t i = 0; i < n; ++i) {
        double row = 0, column = 0;
        for (size_t j = 0; j < n; ++j) {
          EXPECT_GE(w[i][j], 0);
          row += w[i][j];
          column += w[j][i];
        }
        EXPECT_NEAR(row, 1, 1e-12) << n << " workers, round " << round << ", row " << i;
        EXPECT_NEAR(column, 1, 1e-12) << n << " workers, round " << round << ", column " << i;
      }
    }
}

TEST_P(EveryGraph, SendersAndReceiversAgree) {
  for (size_t n = 1; n <= 16; ++n)
    for (uint64_t round = 0; round < 8 && has(GetParam(), n); ++round) {
      const Matrix w = matrix(GetParam(), n, round);
      for (size_t i = 0; i < n; ++i) {
        const std::vector<size_t> to = GetParam().mixing(n, i, round, 7).to;
        for (size_t j = 0; j < n; ++j)
          EXPECT_EQ(std::count(to.begin(), to.end(), j), j != i && w[j][i] > 0)
              << i << " to " << j << " of " << n;
      }
    }
}

TEST_P(EveryGraph, RepeatsAfterItsPeriod) {
  for (size_t n = 2; n <= 16; ++n) {
    const size_t period = GetParam().period(n);
    for (uint64_t round = 0; round < 4 && period > 0 && has(GetParam(), n); ++round)
      EXPECT_EQ(matrix(GetParam(), n, round), matrix(GetParam(), n, round + period));
  }
}

TEST_P(EveryGraph, HasAPositiveGap) {
  for (size_t n = 2; n <= 16; ++n) {
    if (!has(GetParam(), n)) continue;
    const double gap = spectral_gap(GetParam(), n);
    EXPECT_GT(gap, 0) << n;
    EXPECT_LE(gap, 1) << n;
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, EveryGraph, testing::ValuesIn(graph_catalog()),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(SpectralGap, OfARingIsItsClosedForm) {
  for (size_t n = 3; n <= 16; ++n) {
    double most = 0;
    for (size_t k = 1; k < n; ++k)
      most = std::max(
          most, std::abs((1 + 2 * std::cos(2 * std::numbers::pi * double(k) / double(n))) / 3));
    EXPECT_NEAR(spectral_gap(graph("ring"), n), 1 - most, 1e-9) << n;
  }
}

TEST(SpectralGap, OfATorusIsItsClosedForm) {  // 4 x 4: eigenvalues (1 + 2 cos a + 2 cos b) / 5
  EXPECT_NEAR(spectral_gap(graph("torus"), 16), 1 - 3.0 / 5, 1e-9);
}

TEST(SpectralGap, OfStaticExponentialGraphs) {
  // Ying et al. 2021: 2 / (1 + log2 n) when n is a power of two (n even).
  for (const size_t n : {4u, 8u, 16u})
    EXPECT_NEAR(spectral_gap(graph("exponential"), n), 2 / (1 + std::log2(double(n))), 1e-9) << n;
}

TEST(SpectralGap, OnePeerExponentialAgreesExactlyAfterAPeriod) {
  for (const size_t n : {2u, 4u, 8u, 16u})
    EXPECT_NEAR(spectral_gap(graph("one_peer_exponential"), n), 1, 1e-3) << n;
  EXPECT_LT(spectral_gap(graph("one_peer_exponential"), 6), 0.9);
}

TEST(SpectralGap, OfMatchings) {
  // Two workers are always matched; of many, half of what one knows is its own.
  EXPECT_NEAR(spectral_gap(graph("random_match"), 2), 1, 1e-12);
  EXPECT_NEAR(spectral_gap(graph("random_match"), 1001), 1 - std::sqrt(0.5), 1e-3);
}

TEST(Torus, NeedsARectangle) {
  EXPECT_EQ(torus_rows(7), 1u);
  EXPECT_EQ(torus_rows(12), 3u);
  EXPECT_EQ(torus_rows(16), 4u);
}

}  // namespace
}  // namespace tutti
