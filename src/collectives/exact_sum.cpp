#include "collectives/exact_sum.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace tutti {
namespace {

constexpr int kFractionBits = 80;
constexpr float kLastBit = 0x1p-80f;
constexpr int kMagnitudeBits = 38;
constexpr int128_t kPoisoned = int128_t{1} << 127;

// The loops below call these, which are inlined; position-independent code would not inline
// functions that are visible outside.
//
// Without branches on sign or size: gradients have both in no order that a processor could predict.
int128_t fixed(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const int biased = static_cast<int>(bits >> 23 & 0xFF);
  if (biased >= 127 + kMagnitudeBits) return kPoisoned;
  // value = mantissa * 2^(exponent - 150); subnormals share the exponent of the smallest normal.
  const int64_t is_normal = biased != 0;
  const int shift = biased + static_cast<int>(1 - is_normal) - 150 + kFractionBits;
  int64_t mantissa = static_cast<int64_t>(bits & 0x7FFFFF) | is_normal << 23;
  mantissa >>= std::min(std::max(-shift, 0), 31);  // what lies below the resolution is cut off
  const int64_t sign = -static_cast<int64_t>(bits >> 31);
  return static_cast<int128_t>((mantissa ^ sign) - sign) << std::max(shift, 0);
}

float nearest_float(int128_t value) {
  if (value == kPoisoned) return std::numeric_limits<float>::quiet_NaN();
  return static_cast<float>(value) * kLastBit;  // a power of two: exact
}

int128_t sum_of(int128_t a, int128_t b) {
  return a == kPoisoned || b == kPoisoned ? kPoisoned : a + b;
}

}  // namespace

ExactSum exact(float value) { return {fixed(value)}; }

float rounded(ExactSum sum) { return nearest_float(sum.value); }

ExactSum operator+(ExactSum a, ExactSum b) { return {sum_of(a.value, b.value)}; }

void accumulate(std::span<ExactSum> into, std::span<const float> values) {
  for (size_t i = 0; i < into.size(); ++i) into[i].value = sum_of(into[i].value, fixed(values[i]));
}

void round_all(std::span<const ExactSum> sums, std::span<float> values) {
  for (size_t i = 0; i < sums.size(); ++i) values[i] = nearest_float(sums[i].value);
}

}  // namespace tutti
