#include "core/finite.h"

#include <bit>
#include <cstdint>

#include "core/vectorised.h"

namespace tutti {
namespace {

// The exponent of infinity and NaN. Integers, because a loop over them is vectorised.
constexpr uint32_t kExponent = 0x7f800000;

TUTTI_VECTORISED uint32_t any_not_finite(const float* values, size_t count) {
  uint32_t result = 0;
  for (size_t i = 0; i < count; ++i)
    result |= static_cast<uint32_t>((std::bit_cast<uint32_t>(values[i]) & kExponent) == kExponent);
  return result;
}

}  // namespace

bool all_finite(std::span<const float> values) {
  return any_not_finite(values.data(), values.size()) == 0;
}

}  // namespace tutti
