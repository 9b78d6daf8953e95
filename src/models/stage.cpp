#include "models/stage.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "models/builder.h"

namespace tutti {
namespace {

// Parameters lie in the order of the layers.
Range parameters_in(const Architecture& whole, Range layers) {
  Range result{whole.parameters.size(), 0};
  for (size_t i = layers.begin; i < layers.end; ++i)
    for (const size_t parameter : whole.layers[i].parameters) {
      result.begin = std::min(result.begin, parameter);
      result.end = std::max(result.end, parameter + 1);
    }
  return result;
}

double product(const std::vector<int64_t>& shape) {
  double result = 1;
  for (const int64_t length : shape) result *= static_cast<double>(length);
  return result;
}

}  // namespace

Architecture stage_of(const Architecture& whole, Range layers) {
  TUTTI_CHECK(layers.begin < layers.end && layers.end <= whole.layers.size());
  const Range own = parameters_in(whole, layers);
  TUTTI_CHECK(own.begin < own.end);
  Architecture stage;
  stage.kind = whole.kind;
  // A branch has no layers below it: it takes its part of the samples.
  const bool branch =
      std::find(whole.branches.begin(), whole.branches.end(), layers.begin) != whole.branches.end();
  stage.place = {.layer = branch ? 0 : whole.place.layer + layers.begin,
                 .parameter = whole.place.parameter + own.begin,
                 .value = whole.place.value + whole.parameters[own.begin].range.begin,
                 .last = whole.place.last && layers.end == whole.layers.size()};
  stage.input = whole.layers[layers.begin].input;
  stage.outputs = whole.outputs;
  stage.positions = whole.positions;
  stage.classification = whole.classification;
  stage.l2 = whole.l2;
  stage.l1 = whole.l1;
  const size_t first_value = whole.parameters[own.begin].range.begin;
  for (size_t i = own.begin; i < own.end; ++i) {
    stage.parameters.push_back(whole.parameters[i]);
    Range& range = stage.parameters.back().range;
    range = {range.begin - first_value, range.end - first_value};
  }
  stage.parameter_count = stage.parameters.back().range.end;
  for (size_t i = layers.begin; i < layers.end; ++i) {
    stage.layers.push_back(whole.layers[i]);
    Layer& layer = stage.layers.back();
    for (size_t& parameter : layer.parameters) parameter -= own.begin;
    if (layer.kind == LayerKind::kAdd) {
      TUTTI_CHECK(layer.skip >= layers.begin);
      layer.skip -= layers.begin;
    }
  }
  return stage;
}

double slope_bytes(const Architecture& stage) {
  double floats = 0;
  bool needed = stage.place.layer > 0;  // below the first parameters nobody asks
  for (const Layer& layer : stage.layers) {
    switch (layer.kind) {
      case LayerKind::kRelu:
      case LayerKind::kFlatten:
      case LayerKind::kSkip:
      case LayerKind::kAdd:
      case LayerKind::kPosition:
      case LayerKind::kDropout:
      case LayerKind::kEmbedding:
      case LayerKind::kRows:
      case LayerKind::kSpread:
      case LayerKind::kCombine:
        break;
      case LayerKind::kAttention:  // by its input twice, by its weights twice, and by its output
        floats += 2 * product(layer.input) + product(layer.output) +
                  2 * static_cast<double>(layer.groups * layer.input[0] * layer.input[0]);
        break;
      default:
        floats += needed ? product(layer.input) : 0;
    }
    needed = needed || !layer.parameters.empty();
  }
  return sizeof(float) * floats;
}

std::vector<Range> stages_between(const Architecture& whole, const std::vector<size_t>& cuts) {
  std::vector<Range> stages;
  size_t begin = 0;
  for (const size_t cut : cuts) {
    TUTTI_CHECK(cut > begin);
    stages.push_back({begin, cut});
    begin = cut;
  }
  stages.push_back({begin, whole.layers.size()});
  return stages;
}

std::string cuts_in_words(const Architecture& whole, const std::vector<size_t>& cuts) {
  std::string list;
  for (const size_t cut : cuts)
    list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", cut, whole.layers[cut].name);
  return list.empty() ? "nowhere" : "before layer " + list;
}

std::vector<Range> given_stages(const Architecture& whole, const std::vector<size_t>& allowed,
                                const std::vector<int64_t>& places, const char* key) {
  std::vector<size_t> cuts;
  for (const int64_t place : places) {
    const auto cut = static_cast<size_t>(place);
    if (std::find(allowed.begin(), allowed.end(), cut) == allowed.end() ||
        (!cuts.empty() && cut <= cuts.back()))
      throw ConfigError(key, fmt::format("{}: {} is no place to cut the model at, or is out of "
                                         "order; it can be cut {}",
                                         key, place, cuts_in_words(whole, allowed)));
    cuts.push_back(cut);
  }
  return stages_between(whole, cuts);
}

size_t input_values(const Architecture& stage) {
  return static_cast<size_t>(elements(stage.input));
}

ModelMemory part_of_memory(const ModelMemory& memory, const Architecture& whole,
                           const Architecture& stage) {
  const auto part = [&](std::span<float> all) {
    return all.empty() ? all
                       : all.subspan(stage.place.value - whole.place.value, stage.parameter_count);
  };
  return {part(memory.parameters), part(memory.gradients)};
}

size_t output_values(const Architecture& stage) {
  return static_cast<size_t>(elements(stage.layers.back().output));
}

}  // namespace tutti
