// One layer of a sequential model: its arithmetic, forward and backward, by LibTorch.
//
// The backward pass is called layer by layer instead of through autograd: gradients are written
// straight into the caller's flat buffer, and it is plain when a layer's gradients are final.
// No tensor requires a gradient, so no thread-local mode has to be set or restored.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "models/model.h"

namespace tutti {

// What a pass is about. Evaluation passes leave nothing out (dropout is for training) and take
// running statistics for those of the batch.
struct Pass {
  const Batch& batch;
  bool training;
  float scale = 1;  // training: of the gradients
};

class Operation {
 public:
  virtual ~Operation() = default;

  // Keeps what `backward` needs, `x` included. May overwrite `x` where an operation made it.
  virtual at::Tensor forward(const at::Tensor& x, const Pass& pass) = 0;

  // Given the loss's gradient by this layer's output, overwrites the gradients of the layer's
  // parameters and returns the gradient by its input, or nothing when nobody needs it. May
  // overwrite `slope`.
  virtual at::Tensor backward(const at::Tensor& slope, bool input_needed) = 0;
};

// An operation and the layer it stands for, or the last of the layers: some are done in one go.
struct Step {
  std::unique_ptr<Operation> operation;
  size_t layer;
};

// Parameters and gradients are views of `memory`; `seed` is that of the dropout masks. `group` is
// for the layers of a shard alone.
std::vector<Step> make_steps(const Architecture& architecture, const ModelMemory& memory,
                             uint64_t seed, ShardGroup* group);

}  // namespace tutti
