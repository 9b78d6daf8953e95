// Tensors over memory that the caller owns, and tensors that are kept from step to step.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/model.h"

namespace tutti {

// Weight and bias of a layer with their gradients, as PyTorch sees them: views of the flat buffers.
// A layer without bias has no tensors for it, and a
// model without memory for gradients none for them.
// For channels last the strides say so; a copy to that format would leave the buffer.
struct Weights {
  Weights(const Architecture& architecture, const Layer& layer, const ModelMemory& memory);
  at::Tensor weight, weight_slope, bias, bias_slope;
};

// `kept` in another shape. Keeping it avoids that large blocks are returned to the system and
// faulted in again at every step.
at::Tensor& resized(at::Tensor& kept, at::IntArrayRef shape);

}  // namespace tutti
