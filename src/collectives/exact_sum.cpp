#include "collectives/exact_sum.h"

#include <bit>
#include <cmath>
#include <limits>

namespace tutti {
namespace {

constexpr int kFractionBits = 80;
constexpr int kMagnitudeBits = 38;
constexpr int128_t kPoisoned = int128_t{1} << 127;

}  // namespace

ExactSum exact(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const int biased = static_cast<int>(bits >> 23 & 0xFF);
  if (biased >= 127 + kMagnitudeBits) return {kPoisoned};
  // value = mantissa * 2^(exponent - 150); subnormals share the exponent of the smallest normal.
  const int exponent = biased == 0 ? 1 : biased;
  const auto mantissa = static_cast<int128_t>((bits & 0x7FFFFF) | (biased == 0 ? 0u : 0x800000u));
  const int shift = exponent - 150 + kFractionBits;
  const int128_t magnitude =
      shift >= 0 ? mantissa << shift : (shift > -24 ? mantissa >> -shift : 0);
  return {bits >> 31 ? -magnitude : magnitude};
}

float rounded(ExactSum sum) {
  if (sum.value == kPoisoned) return std::numeric_limits<float>::quiet_NaN();
  return std::ldexp(static_cast<float>(sum.value), -kFractionBits);
}

ExactSum operator+(ExactSum a, ExactSum b) {
  return {a.value == kPoisoned || b.value == kPoisoned ? kPoisoned : a.value + b.value};
}

void accumulate(std::span<ExactSum> into, std::span<const float> values) {
  for (size_t i = 0; i < into.size(); ++i) into[i] = into[i] + exact(values[i]);
}

void round_all(std::span<const ExactSum> sums, std::span<float> values) {
  for (size_t i = 0; i < sums.size(); ++i) values[i] = rounded(sums[i]);
}

}  // namespace tutti
