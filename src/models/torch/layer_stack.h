// Layers one after the other: forward from the first to the last, backward from the last on.
#pragma once

#include <functional>
#include <vector>

#include "models/torch/operation.h"

namespace tutti {

class LayerStack {
 public:
  // Called with each layer that has parameters, when their gradients are final.
  using Done = std::function<void(const Layer&)>;

  // The architecture must outlive it, and of a shard the group. Parameters and gradients are views
  // of `memory`.
  LayerStack(const Architecture& architecture, const ModelMemory& memory, uint64_t seed,
             ShardGroup* group = nullptr);

  // `before` is called with each layer that has parameters, before they are read.
  at::Tensor forward(at::Tensor x, const Pass& pass, const Done& before = nullptr);
  // Given the gradient by the output of the last forward pass, which it may overwrite. Returns the
  // gradient by the input where it is needed; otherwise it ends at the first layer with parameters.
  at::Tensor backward(at::Tensor slope, bool input_needed, const Done& done);

 private:
  const Layer& layer_of(const Step& step) const { return architecture_.layers[step.layer]; }

  const Architecture& architecture_;
  std::vector<Step> steps_;
  size_t first_trained_ = 0;  // no step below this one has parameters
};

}  // namespace tutti
