#include "collectives/exact_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace tutti {
namespace {

constexpr int kFractionBits = 80;
constexpr int kMagnitudeBits = 38;
constexpr int128_t kPoisoned = int128_t{1} << 127;

}  // namespace

// Without branches on sign or size: gradients have both in no order that a processor could predict.
ExactSum exact(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const int biased = static_cast<int>(bits >> 23 & 0xFF);
  if (biased >= 127 + kMagnitudeBits) return {kPoisoned};
  // value = mantissa * 2^(exponent - 150); subnormals share the exponent of the smallest normal.
  const int64_t is_normal = biased != 0;
  const int shift = biased + static_cast<int>(1 - is_normal) - 150 + kFractionBits;
  int64_t mantissa = static_cast<int64_t>(bits & 0x7FFFFF) | is_normal << 23;
  mantissa >>= std::min(std::max(-shift, 0), 31);  // what lies below the resolution is cut off
  const int64_t sign = -static_cast<int64_t>(bits >> 31);
  return {static_cast<int128_t>((mantissa ^ sign) - sign) << std::max(shift, 0)};
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
