#include "models/architecture.h"

#include <algorithm>

#include "models/builder.h"

namespace tutti {
namespace {

// The gradients of a layer's parameters are computed together: they are one range.
Range parameters_of(const Architecture& architecture, const Layer& layer) {
  return {architecture.parameters[layer.parameters.front()].range.begin,
          architecture.parameters[layer.parameters.back()].range.end};
}

size_t overlap(Range a, Range b) {
  const size_t begin = std::max(a.begin, b.begin), end = std::min(a.end, b.end);
  return begin < end ? end - begin : 0;
}

}  // namespace

double Architecture::forward_flops() const {
  double sum = 0;
  for (const Layer& layer : layers) sum += layer.flops;
  return sum;
}

double Architecture::training_flops() const { return 3 * forward_flops(); }

// The input and what each layer leaves behind: relu, add, positions and sums over shards work in
// place, flattening and skips are views, pooling also remembers where each maximum was (32 bits),
// norms two numbers for each mean; attention turns its input around, and keeps its weights before
// and after the softmax and what they weighed for each head.
double Architecture::activation_bytes() const {
  double floats = static_cast<double>(elements(input));
  for (const Layer& layer : layers) {
    const auto size = static_cast<double>(elements(layer.output));
    switch (layer.kind) {
      case LayerKind::kRelu:
      case LayerKind::kFlatten:
      case LayerKind::kSkip:
      case LayerKind::kAdd:
      case LayerKind::kPosition:
      case LayerKind::kSpread:
      case LayerKind::kCombine:
        break;
      case LayerKind::kMaxPool:
        floats += 2 * size;
        break;
      case LayerKind::kGroupNorm:
        floats += size + 2 * static_cast<double>(layer.groups);
        break;
      case LayerKind::kBatchNorm:
        floats += size +
                  2 * static_cast<double>(layer.output[0]) / static_cast<double>(layer.ghost_batch);
        break;
      case LayerKind::kLayerNorm:
        floats += size + 2 * size / static_cast<double>(layer.output.back());
        break;
      case LayerKind::kAttention:
        floats +=
            2 * size + static_cast<double>(elements(layer.input) +
                                           2 * layer.groups * layer.input[0] * layer.input[0]);
        break;
      default:
        floats += size;
    }
  }
  return sizeof(float) * floats;
}

std::vector<size_t> Architecture::cuts() const {
  std::vector<size_t> result;
  bool stage_has_parameters = false;
  int open_skips = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    const bool begins_part = layers[i].kind == LayerKind::kSkip || !layers[i].parameters.empty();
    if (begins_part && open_skips == 0 && stage_has_parameters) {
      result.push_back(i);
      stage_has_parameters = false;
    }
    if (layers[i].kind == LayerKind::kSkip) ++open_skips;
    if (layers[i].kind == LayerKind::kAdd) --open_skips;
    if (!layers[i].parameters.empty()) stage_has_parameters = true;
  }
  return result;
}

// Walks backward: the work since the layer above with parameters leads to this layer's gradients.
// A range that covers a layer in part takes that part of its work, so that the work of disjoint
// ranges always adds up to the whole.
template <typename Cost>
double Architecture::backward_share(Range range, const Cost& cost) const {
  double sum = 0, pending = 0, last_share = 0;
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    pending += cost(*layer);
    if (layer->parameters.empty()) continue;
    const Range own = parameters_of(*this, *layer);
    last_share = static_cast<double>(overlap(own, range)) / static_cast<double>(own.size());
    sum += pending * last_share;
    pending = 0;
  }
  return sum + pending * last_share;  // layers below the first parameters
}

double Architecture::backward_flops(Range range) const {
  return backward_share(range, [](const Layer& layer) { return 2 * layer.flops; });
}

double Architecture::backward_layers(Range range) const {
  return backward_share(range, [](const Layer&) { return 1.0; });
}

std::vector<Range> Architecture::trained() const { return ranges(false); }
std::vector<Range> Architecture::statistics() const { return ranges(true); }

std::vector<Range> Architecture::ranges(bool running) const {
  std::vector<Range> result;
  for (const Parameter& parameter : parameters) {
    if ((parameter.running_rate > 0) != running) continue;
    if (!result.empty() && result.back().end == parameter.range.begin)
      result.back().end = parameter.range.end;
    else
      result.push_back(parameter.range);
  }
  return result;
}

std::vector<Range> ready_ranges(const Architecture& architecture) {
  std::vector<Range> result;
  for (auto layer = architecture.layers.rbegin(); layer != architecture.layers.rend(); ++layer)
    if (!layer->parameters.empty()) result.push_back(parameters_of(architecture, *layer));
  return result;
}

}  // namespace tutti
