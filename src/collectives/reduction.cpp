#include "collectives/reduction.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "collectives/exact_sum.h"

namespace tutti {
namespace {

template <class T>
void add(std::byte* into_bytes, const std::byte* from_bytes, size_t count) {
  auto* __restrict into = reinterpret_cast<T*>(into_bytes);
  const auto* __restrict from = reinterpret_cast<const T*>(from_bytes);
  for (size_t i = 0; i < count; ++i) into[i] = into[i] + from[i];
}

// Two buffers, the common case on a small machine, in one pass without a temporary.
template <class T>
void add_pair(std::byte* a_bytes, std::byte* b_bytes, size_t count) {
  auto* __restrict a = reinterpret_cast<T*>(a_bytes);
  auto* __restrict b = reinterpret_cast<T*>(b_bytes);
  for (size_t i = 0; i < count; ++i) {
    const T sum = a[i] + b[i];
    a[i] = sum;
    b[i] = sum;
  }
}

// Any number of buffers, block by block so that the running sum stays in the first-level cache.
template <class T>
void add_all(std::span<std::byte* const> buffers, size_t count) {
  if (buffers.size() == 2) return add_pair<T>(buffers[0], buffers[1], count);
  constexpr size_t kBlock = 8192 / sizeof(T);
  alignas(64) std::array<T, kBlock> sum;
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t size = std::min(kBlock, count - begin);
    auto* running = reinterpret_cast<std::byte*>(sum.data());
    std::copy_n(reinterpret_cast<const T*>(buffers[0]) + begin, size, sum.data());
    for (std::byte* buffer : buffers.subspan(1)) add<T>(running, buffer + begin * sizeof(T), size);
    for (std::byte* buffer : buffers)
      std::copy_n(sum.data(), size, reinterpret_cast<T*>(buffer) + begin);
  }
}

}  // namespace

const Reduction kSumFloat{"sum of floats", sizeof(float), add<float>, add_all<float>};
const Reduction kSumInt64{"sum of integers", sizeof(int64_t), add<int64_t>, add_all<int64_t>};
const Reduction kSumExact{"exact sum", sizeof(ExactSum), add<ExactSum>, add_all<ExactSum>};

}  // namespace tutti
