#include "collectives/reduction.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "collectives/exact_sum.h"
#include "core/vectorised.h"

namespace tutti {
namespace {

// The loops are functions of their own, not inlined: only so does the compiler keep the promise
// that the buffers do not overlap, and vectorises.
TUTTI_VECTORISED void add_floats(float* __restrict into, const float* __restrict from,
                                 size_t count) {
  for (size_t i = 0; i < count; ++i) into[i] += from[i];
}
TUTTI_VECTORISED void add_float_pair(float* __restrict a, float* __restrict b, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const float sum = a[i] + b[i];
    a[i] = sum;
    b[i] = sum;
  }
}

void add_values(float* into, const float* from, size_t count) { add_floats(into, from, count); }
void add_pair(float* a, float* b, size_t count) { add_float_pair(a, b, count); }

template <class T>
void add_values(T* __restrict into, const T* __restrict from, size_t count) {
  for (size_t i = 0; i < count; ++i) into[i] = into[i] + from[i];
}
template <class T>
void add_pair(T* __restrict a, T* __restrict b, size_t count) {
  for (size_t i = 0; i < count; ++i) b[i] = a[i] = a[i] + b[i];
}

template <class T>
void add(std::byte* into, const std::byte* from, size_t count) {
  add_values(reinterpret_cast<T*>(into), reinterpret_cast<const T*>(from), count);
}

// Two buffers, the common case on a small machine, take one pass. More are summed block by block in
// the first of them, so that what is read again is still in the cache.
template <class T>
void add_all(std::span<std::byte* const> buffers, size_t count) {
  const auto at = [&](size_t i, size_t begin) { return reinterpret_cast<T*>(buffers[i]) + begin; };
  if (buffers.size() == 2) return add_pair(at(0, 0), at(1, 0), count);
  constexpr size_t kBlock = 8192 / sizeof(T);
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t size = std::min(kBlock, count - begin);
    for (size_t i = 1; i < buffers.size(); ++i) add_values(at(0, begin), at(i, begin), size);
    for (size_t i = 1; i < buffers.size(); ++i)
      std::memcpy(static_cast<void*>(at(i, begin)), at(0, begin), size * sizeof(T));
  }
}

void raise(std::byte* into, const std::byte* from, size_t count) {
  auto* values = reinterpret_cast<float*>(into);
  const auto* others = reinterpret_cast<const float*>(from);
  for (size_t i = 0; i < count; ++i) values[i] = std::max(values[i], others[i]);
}

void raise_all(std::span<std::byte* const> buffers, size_t count) {
  for (size_t i = 1; i < buffers.size(); ++i) raise(buffers[0], buffers[i], count);
  for (size_t i = 1; i < buffers.size(); ++i)
    std::memcpy(buffers[i], buffers[0], count * sizeof(float));
}

}  // namespace

const Reduction kMaximumFloat{"maximum of floats", sizeof(float), raise, raise_all};
const Reduction kSumFloat{"sum of floats", sizeof(float), add<float>, add_all<float>};
const Reduction kSumDouble{"sum of doubles", sizeof(double), add<double>, add_all<double>};
const Reduction kSumInt64{"sum of integers", sizeof(int64_t), add<int64_t>, add_all<int64_t>};
const Reduction kSumExact{"exact sum", sizeof(ExactSum), add<ExactSum>, add_all<ExactSum>};

}  // namespace tutti
