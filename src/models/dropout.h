// Dropout masks that do not depend on who computes a sample, or in which batch.
#pragma once

#include <cstdint>
#include <span>

namespace tutti {

// What a mask is a function of, beside its width.
struct DropoutKey {
  uint64_t seed = 0;
  uint64_t step = 0;
  uint32_t sample = 0;
  uint32_t layer = 0;  // position in the layers of the whole model, below 2^24
};

// Writes 0 with this probability and 1 / (1 - probability) otherwise, so that the expectation of
// what it multiplies stays the same.
void fill_dropout_mask(const DropoutKey& key, double probability, std::span<float> mask);

}  // namespace tutti
