#include "collectives/reduction.h"

#include <algorithm>
#include <cstdint>

#include "collectives/exact_sum.h"
#include "core/vectorised.h"

namespace tutti {
namespace {

// The element-wise loops. Two buffers, the common case on a small machine, take one pass without a
// temporary.
template <class T>
TUTTI_INLINE void add_into(T* __restrict into, const T* __restrict from, size_t count) {
  for (size_t i = 0; i < count; ++i) into[i] = into[i] + from[i];
}
template <class T>
TUTTI_INLINE void add_pair(T* __restrict a, T* __restrict b, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const T sum = a[i] + b[i];
    a[i] = sum;
    b[i] = sum;
  }
}

// Any number of buffers, block by block so that the running sum stays in the first-level cache.
template <class T>
TUTTI_INLINE void add_all(std::span<std::byte* const> buffers, size_t count) {
  const auto at = [&](size_t i) { return reinterpret_cast<T*>(buffers[i]); };
  if (buffers.size() == 2) return add_pair(at(0), at(1), count);
  constexpr size_t kBlock = 4096 / sizeof(T);
  alignas(64) T sum[kBlock];
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t size = std::min(kBlock, count - begin);
    std::copy_n(at(0) + begin, size, sum);
    for (size_t i = 1; i < buffers.size(); ++i) add_into(sum, at(i) + begin, size);
    for (size_t i = 0; i < buffers.size(); ++i) std::copy_n(sum, size, at(i) + begin);
  }
}

TUTTI_VECTORISED void add_floats(std::byte* into, const std::byte* from, size_t count) {
  add_into(reinterpret_cast<float*>(into), reinterpret_cast<const float*>(from), count);
}
TUTTI_VECTORISED void add_all_floats(std::span<std::byte* const> buffers, size_t count) {
  add_all<float>(buffers, count);
}

template <class T>
void add(std::byte* into, const std::byte* from, size_t count) {
  add_into(reinterpret_cast<T*>(into), reinterpret_cast<const T*>(from), count);
}
template <class T>
void add_everywhere(std::span<std::byte* const> buffers, size_t count) {
  add_all<T>(buffers, count);
}

}  // namespace

const Reduction kSumFloat{"sum of floats", sizeof(float), add_floats, add_all_floats};
const Reduction kSumInt64{"sum of integers", sizeof(int64_t), add<int64_t>,
                          add_everywhere<int64_t>};
const Reduction kSumExact{"exact sum", sizeof(ExactSum), add<ExactSum>, add_everywhere<ExactSum>};

}  // namespace tutti
