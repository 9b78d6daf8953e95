#include "core/random.h"

#include <cmath>
#include <numbers>
#include <utility>

namespace tutti {

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

Random::Random(uint64_t seed, Stream stream, uint32_t a, uint32_t b)
    : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
      counter_{0, a, b, static_cast<uint32_t>(stream) << 24} {}

uint32_t Random::next_u32() {
  if (used_ == 4) {
    block_ = philox(counter_, key_);
    // The upper 24 bits of a 56-bit block number live beside the stream's name.
    if (++counter_[0] == 0) ++counter_[3];
    used_ = 0;
  }
  return block_[static_cast<size_t>(used_++)];
}

uint64_t Random::next_u64() {
  const uint64_t high = next_u32();
  return high << 32 | next_u32();
}

double Random::uniform() { return static_cast<double>(next_u64() >> 11) * 0x1p-53; }

double Random::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

uint64_t Random::below(uint64_t limit) {
  const uint64_t biased = (0 - limit) % limit;  // values below this would favour small results
  for (;;) {
    const uint64_t value = next_u64();
    if (value >= biased) return value % limit;
  }
}

void Random::shuffle(std::span<uint32_t> values) {
  for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
}

}  // namespace tutti
