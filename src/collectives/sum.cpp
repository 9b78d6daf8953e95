#include "collectives/sum.h"

#include <utility>

#include "collectives/exact_sum.h"
#include "core/error.h"

namespace tutti {

const Reduction& reduction_of(SumKind kind) {
  return kind == SumKind::kExact ? kSumExact : kSumFloat;
}

Sum::Sum(SumKind kind, size_t count, Arithmetic arithmetic)
    : kind_(kind),
      arithmetic_(arithmetic),
      own_(count * reduction_of(kind).element_bytes),
      memory_(own_.span()) {}

Sum::Sum(SumKind kind, std::span<std::byte> memory, Arithmetic arithmetic)
    : kind_(kind), arithmetic_(arithmetic), memory_(memory) {}

Sum Sum::of(SumKind kind, std::span<std::byte> memory, Arithmetic arithmetic) {
  Sum sum(kind, memory, arithmetic);
  sum.begun_ = true;
  return sum;
}

// A plain sum begins with a copy of its first term.
void Sum::add(std::span<const float> term, size_t begin) {
  const bool whole = begin == 0 && term.size() == size();
  const bool copies = kind_ == SumKind::kPlain && whole && !begun_;
  const std::span<std::byte> all = copies ? landing() : bytes();
  TUTTI_CHECK(begin + term.size() <= size());
  if (copies)
    arithmetic_.copy(term, values_in<float>(all));
  else if (kind_ == SumKind::kPlain)
    arithmetic_.add(values_in<float>(all).subspan(begin, term.size()), term);
  else
    arithmetic_.perform(
        [&] { accumulate(values_in<ExactSum>(all).subspan(begin, term.size()), term); });
}

void Sum::add(const Sum& other) {
  TUTTI_CHECK(kind_ == other.kind_ && memory_.size() == other.memory_.size() && other.begun_);
  const std::span<std::byte> all = bytes();
  arithmetic_.perform([&] { reduction().combine(all.data(), other.memory_.data(), size()); });
}

std::span<std::byte> Sum::bytes() {
  // A zero of either kind is all zeros.
  if (!std::exchange(begun_, true)) arithmetic_.fill(memory_, std::byte{0});
  return memory_;
}

std::span<std::byte> Sum::bytes(Range range) {
  const size_t element = reduction().element_bytes;
  return bytes().subspan(range.begin * element, range.size() * element);
}

std::span<std::byte> Sum::landing() {
  begun_ = true;
  return memory_;
}

std::span<const float> Sum::values(std::span<float> rounded) {
  const std::span<std::byte> all = bytes();
  if (kind_ == SumKind::kPlain) return values_in<float>(all);
  arithmetic_.perform([&] { round_all(values_in<ExactSum>(all), rounded); });
  return rounded;
}

}  // namespace tutti
