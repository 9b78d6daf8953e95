// What a message is about. A tag names purpose, step and part, so that a node that waits can say
// what for, and a stuck run is explained by its wait-for graph.
#pragma once

#include <cstdint>
#include <string>

namespace tutti {

using Rank = int;
inline constexpr Rank kAnyRank = -1;

enum class Purpose : uint8_t {
  kUser = 0,
  kGradient,    // the sum of gradients of a step
  kEvaluation,  // shares of an evaluation
  kParameters,  // parameters as a whole
  kControl,     // start, stop, barrier
  kActivation,  // what a stage of a model made of some samples
  kSlope,       // the gradient by that, on its way back
  kFabric = 15,  // reserved for the fabric itself
};

// 40 bits, so that a fabric can add the sender and its incarnation and still fit 64.
class Tag {
 public:
  static constexpr int kStepBits = 22;
  static constexpr int kPartBits = 14;

  constexpr Tag() = default;
  constexpr Tag(Purpose purpose, uint64_t step, uint64_t part = 0)
      : bits_(uint64_t{static_cast<uint8_t>(purpose)} << (kStepBits + kPartBits) |
              (step & ((1u << kStepBits) - 1)) << kPartBits | (part & ((1u << kPartBits) - 1))) {}
  static constexpr Tag from_bits(uint64_t bits) {
    Tag tag;
    tag.bits_ = bits & ((uint64_t{1} << 40) - 1);
    return tag;
  }

  constexpr uint64_t bits() const { return bits_; }
  constexpr Purpose purpose() const {
    return static_cast<Purpose>(bits_ >> (kStepBits + kPartBits));
  }
  constexpr uint64_t step() const { return bits_ >> kPartBits & ((1u << kStepBits) - 1); }
  constexpr uint64_t part() const { return bits_ & ((1u << kPartBits) - 1); }
  std::string describe() const;  // "gradient, step 17, part 2"
  friend constexpr bool operator==(Tag, Tag) = default;

 private:
  uint64_t bits_ = 0;
};

}  // namespace tutti
