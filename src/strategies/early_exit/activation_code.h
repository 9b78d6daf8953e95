// What a tier passes on, in few bits: activations clipped to a range and rounded to evenly spaced
// levels (Zhou et al., "DoReFa-Net", 2016), packed value by value. DDNN binarises: that is 1 bit.
//
// Training sends the same bits; the gradient goes straight through where the value was in range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "models/architecture.h"

namespace tutti {

class ActivationCode {
 public:
  static bool supports(int64_t bits) {
    return bits == 1 || bits == 2 || bits == 4 || bits == 8 || bits == 32;
  }
  // Of `values` floats a sample. The range is 0 to 1, or -1 to 1 where they may be negative.
  ActivationCode(size_t values, int64_t bits, bool negative);

  size_t values() const { return values_; }
  size_t sample_bytes() const;
  bool exact() const { return bits_ == 32; }
  // Whole samples; `wire` has sample_bytes() for each of them.
  void encode(std::span<const float> values, std::span<std::byte> wire) const;
  void decode(std::span<const std::byte> wire, std::span<float> values) const;
  // Leaves of the gradient by the decoded values what reaches the values before encoding.
  void pass_back(std::span<const float> values, std::span<float> slope) const;

 private:
  size_t values_;
  size_t bits_;
  float least_;
};

// Whether what these layers put out can be negative.
bool may_be_negative(const std::vector<Layer>& layers);

}  // namespace tutti
