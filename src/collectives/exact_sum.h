// Addition of floats that is associative, so that a sum is bitwise the same for every topology,
// number of workers and fabric.
//
// A value is a 128-bit fixed-point number whose last bit is worth 2^-80. A float of magnitude below
// 2^38 becomes one by a shift; what lies below 2^-80 (8e-25) is cut off, anything else is kept in
// full. 128 such values cannot overflow, and integer addition does not care about order. NaN,
// infinity and larger values become an absorbing "poisoned" value that reads back as NaN, so that
// divergence still shows. No exponent has to be agreed first, which saves a round of messages and
// the memory of all lanes; the price is 16 bytes on the wire per element instead of 4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tutti {

__extension__ typedef __int128 int128_t;  // NOLINT: the only spelling -Wpedantic accepts

inline constexpr int64_t kMaxExactTerms = 128;

struct alignas(16) ExactSum {
  int128_t value = 0;
};

ExactSum exact(float value);
float rounded(ExactSum sum);  // to the nearest float
ExactSum operator+(ExactSum a, ExactSum b);

// into[i] += values[i]
void accumulate(std::span<ExactSum> into, std::span<const float> values);
void round_all(std::span<const ExactSum> sums, std::span<float> values);

}  // namespace tutti
