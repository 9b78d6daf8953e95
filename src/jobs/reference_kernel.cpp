#include "jobs/reference_kernel.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include "core/vectorised.h"

namespace tutti {
namespace {

constexpr size_t kSize = 192;
constexpr double kBudget_s = 0.02;

// Rows of `b` are read in order, so the inner loop vectorises; all three matrices fit the cache.
TUTTI_VECTORISED void multiply(const float* __restrict a, const float* __restrict b,
                               float* __restrict c) {
  for (size_t i = 0; i < kSize; ++i)
    for (size_t k = 0; k < kSize; ++k) {
      const float factor = a[i * kSize + k];
      for (size_t j = 0; j < kSize; ++j) c[i * kSize + j] += factor * b[k * kSize + j];
    }
}

}  // namespace

double measure_reference_flops() {
  using std::chrono::steady_clock;
  std::vector<float> a(kSize * kSize, 0.5f), b(kSize * kSize, 0.25f), c(kSize * kSize);
  const auto start = steady_clock::now();
  double fastest_s = 1e9;
  for (auto now = start; std::chrono::duration<double>(now - start).count() < kBudget_s;) {
    multiply(a.data(), b.data(), c.data());
    const auto end = steady_clock::now();
    fastest_s = std::min(fastest_s, std::chrono::duration<double>(end - now).count());
    now = end;
  }
  return 2.0 * kSize * kSize * kSize / fastest_s;
}

}  // namespace tutti
