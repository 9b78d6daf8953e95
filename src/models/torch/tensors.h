// Tensors as plain memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

namespace tutti {

inline constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;

// Of a tensor that is dense.
inline std::span<float> values(const at::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<size_t>(tensor.numel())};
}

// As values travel and as shards add them up: images with their channels last, which is how they
// lie in memory anyway.
inline at::Tensor in_memory_order(const at::Tensor& tensor) {
  return tensor.dim() == 4 ? tensor.contiguous(kChannelsLast) : tensor.contiguous();
}

}  // namespace tutti
