#include "models/torch/layer_stack.h"

namespace tutti {

LayerStack::LayerStack(const Architecture& architecture, const ModelMemory& memory, uint64_t seed,
                       ShardGroup* group)
    : architecture_(architecture), steps_(make_steps(architecture, memory, seed, group)) {
  while (layer_of(steps_[first_trained_]).parameters.empty()) ++first_trained_;
}

at::Tensor LayerStack::forward(at::Tensor x, const Pass& pass, const Done& before) {
  for (const Step& step : steps_) {
    if (before && !layer_of(step).parameters.empty()) before(layer_of(step));
    x = step.operation->forward(x, pass);
  }
  return x;
}

at::Tensor LayerStack::backward(at::Tensor slope, bool input_needed, const Done& done) {
  const size_t last = input_needed ? 0 : first_trained_;
  for (size_t i = steps_.size(); i-- > last;) {
    slope = steps_[i].operation->backward(slope, input_needed || i > last);
    const Layer& layer = layer_of(steps_[i]);
    if (!layer.parameters.empty()) done(layer);
  }
  return slope;
}

}  // namespace tutti
