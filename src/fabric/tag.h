// What a message is about. A tag names purpose, step and part, so that a node that waits can say
// what for, and a stuck run is explained by its wait-for graph.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>

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

// 40 bits, so that a fabric can add the sender and its incarnation and still fit 64. Nothing is cut
// off without a word: a step is a constant that fits or a count that its user wraps, a part that
// does not fit is an error. Both are types of their own, so that neither can be forgotten.
class Tag {
 public:
  static constexpr int kStepBits = 22;
  static constexpr int kPartBits = 14;
  static constexpr uint64_t kSteps = uint64_t{1} << kStepBits;
  static constexpr uint64_t kParts = uint64_t{1} << kPartBits;

  class Step {
   public:
    // A constant; one that does not fit does not compile.
    consteval Step(uint64_t constant) : value_(constant) {
      if (constant >= kSteps) does_not_fit(constant, kSteps);
    }

   private:
    friend class Tag;
    struct Wrapped {
      uint64_t value;
    };
    constexpr explicit Step(Wrapped wrapped) : value_(wrapped.value) {}
    uint64_t value_;
  };

  class Part {
   public:
    constexpr Part(uint64_t part) : value_(part) {
      if (part >= kParts) does_not_fit(part, kParts);
    }
    // Protocols name their parts.
    template <class Name>
      requires std::is_enum_v<Name>
    constexpr Part(Name name) : Part(static_cast<uint64_t>(name)) {}

   private:
    friend class Tag;
    uint64_t value_;
  };

  // The step of what is counted without end: steps of a long run, rounds, requests. It begins again
  // at 0 after kSteps, which is harmless: a tag has to differ only from those of messages between
  // the same two nodes that are under way at the same time, and never are so many.
  template <std::integral Count>
  static constexpr Step wrapped(Count count) {
    return Step(Step::Wrapped{static_cast<uint64_t>(count) % kSteps});
  }

  constexpr Tag() = default;
  constexpr Tag(Purpose purpose, Step step, Part part = 0)
      : bits_(uint64_t{static_cast<uint8_t>(purpose)} << (kStepBits + kPartBits) |
              step.value_ << kPartBits | part.value_) {}
  static constexpr Tag from_bits(uint64_t bits) {
    Tag tag;
    tag.bits_ = bits & ((uint64_t{1} << 40) - 1);
    return tag;
  }

  constexpr uint64_t bits() const { return bits_; }
  constexpr Purpose purpose() const {
    return static_cast<Purpose>(bits_ >> (kStepBits + kPartBits));
  }
  constexpr uint64_t step() const { return bits_ >> kPartBits & (kSteps - 1); }
  constexpr uint64_t part() const { return bits_ & (kParts - 1); }
  std::string describe() const;  // "gradient, step 17, part 2"
  friend constexpr bool operator==(Tag, Tag) = default;

 private:
  [[noreturn]] static void does_not_fit(uint64_t value, uint64_t values);

  uint64_t bits_ = 0;
};

}  // namespace tutti
