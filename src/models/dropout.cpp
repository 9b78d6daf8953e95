#include "models/dropout.h"

#include <array>

#include "core/random.h"
#include "core/vectorised.h"

namespace tutti {
namespace {

constexpr size_t kLanes = 8;
constexpr size_t kGroup = 4 * kLanes;  // a Philox block yields four words
using Lanes = std::array<uint32_t, kLanes>;

// core/random.h's philox() on eight consecutive blocks at once, so that the compiler can use vector
// instructions: masks are drawn anew for every sample of every step.
TUTTI_INLINE void philox_lanes(std::array<Lanes, 4>& c, uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    for (size_t i = 0; i < kLanes; ++i) {
      const uint64_t product0 = uint64_t{0xD2511F53} * c[0][i];
      const uint64_t product1 = uint64_t{0xCD9E8D57} * c[2][i];
      c[0][i] = static_cast<uint32_t>(product1 >> 32) ^ c[1][i] ^ key0;
      c[2][i] = static_cast<uint32_t>(product0 >> 32) ^ c[3][i] ^ key1;
      c[1][i] = static_cast<uint32_t>(product1);
      c[3][i] = static_cast<uint32_t>(product0);
    }
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
}

}  // namespace

// Positions are dealt out in groups of 32: word w of lane l of a group is position 8 w + l.
TUTTI_VECTORISED
void fill_dropout_mask(const DropoutKey& key, double probability, std::span<float> mask) {
  const auto threshold = static_cast<uint32_t>(probability * 0x1p32);
  const auto kept = static_cast<float>(1 / (1 - probability));
  const uint32_t stream = static_cast<uint32_t>(Stream::kDropout) << 24 | key.layer;
  // Steps beyond 2^32 and seeds share the key's words; neither mixes with the counter.
  const auto key0 = static_cast<uint32_t>(key.seed);
  const auto key1 = static_cast<uint32_t>(key.seed >> 32) ^ static_cast<uint32_t>(key.step >> 32);
  std::array<Lanes, 4> words;
  for (size_t begin = 0; begin < mask.size(); begin += kGroup) {
    const auto block = static_cast<uint32_t>(begin / 4);
    for (size_t i = 0; i < kLanes; ++i) {
      words[0][i] = block + static_cast<uint32_t>(i);
      words[1][i] = static_cast<uint32_t>(key.step);
      words[2][i] = key.sample;
      words[3][i] = stream;
    }
    philox_lanes(words, key0, key1);
    if (mask.size() - begin >= kGroup) {
      for (size_t w = 0; w < 4; ++w)
        for (size_t i = 0; i < kLanes; ++i)
          mask[begin + w * kLanes + i] = words[w][i] < threshold ? 0.0F : kept;
    } else {
      for (size_t i = 0; i < mask.size() - begin; ++i)
        mask[begin + i] = words[i / kLanes][i % kLanes] < threshold ? 0.0F : kept;
    }
  }
}

}  // namespace tutti
