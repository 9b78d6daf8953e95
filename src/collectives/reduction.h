// How two buffers become one: the element type and the operation of an all-reduce.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace tutti {

struct Reduction {
  std::string_view name;
  size_t element_bytes;
  // into[i] = into[i] (op) from[i]
  void (*combine)(std::byte* into, const std::byte* from, size_t count);
  // Combines element i of all `buffers` in their order and writes the result to each of them.
  void (*combine_all)(std::span<std::byte* const> buffers, size_t count);
};

extern const Reduction kSumFloat;
extern const Reduction kMaximumFloat;
extern const Reduction kSumDouble;
extern const Reduction kSumInt64;
extern const Reduction kSumExact;  // elements are ExactSum, see exact_sum.h

}  // namespace tutti
