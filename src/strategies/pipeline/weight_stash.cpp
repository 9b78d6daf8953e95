#include "strategies/pipeline/weight_stash.h"

#include <algorithm>
#include <bit>

#include "core/error.h"

namespace tutti {
namespace {

// Changes with any weight; cheap beside a pass over them with a batch of samples.
uint64_t fingerprint_of(std::span<const float> weights) {
  uint64_t result = weights.size();
  for (const float weight : weights)
    result = (result ^ std::bit_cast<uint32_t>(weight)) * 0x9E3779B97F4A7C15;
  return result;
}

}  // namespace

WeightStash::WeightStash(std::span<float> parameters, size_t slots, Arithmetic arithmetic)
    : parameters_(parameters), arithmetic_(arithmetic), slots_(slots) {
  for (Kept& kept : slots_) kept.weights = Buffer<float>(parameters.size());
}

void WeightStash::keep(size_t slot) {
  Kept& kept = slots_.at(slot);
  kept.version = version_;
  arithmetic_.copy(parameters_, kept.weights.span());
  arithmetic_.perform([&] { kept.fingerprint = fingerprint_of(parameters_); });
}

int64_t WeightStash::missed(size_t slot) const { return version_ - slots_.at(slot).version; }

void WeightStash::swap(Kept& kept) {
  arithmetic_.perform(
      [&] { std::swap_ranges(parameters_.begin(), parameters_.end(), kept.weights.data()); });
}

WeightStash::Borrowed::Borrowed(WeightStash& stash, size_t slot) : stash_(stash), slot_(slot) {
  Kept& kept = stash_.slots_.at(slot);
  stash_.swap(kept);
  stash_.arithmetic_.perform(
      [&] { TUTTI_CHECK(fingerprint_of(stash_.parameters_) == kept.fingerprint); });
}

WeightStash::Borrowed::~Borrowed() { stash_.swap(stash_.slots_[slot_]); }

}  // namespace tutti
