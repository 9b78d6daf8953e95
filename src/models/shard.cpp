#include "models/shard.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/error.h"
#include "models/builder.h"

namespace tutti {
namespace {

// Images are split by channels, everything else by the last dimension.
size_t split_dimension(const std::vector<int64_t>& shape) {
  return shape.size() == 3 ? 0 : shape.size() - 1;
}

size_t extent(const std::vector<int64_t>& shape) {
  return static_cast<size_t>(shape[split_dimension(shape)]);
}

std::vector<int64_t> with_extent(std::vector<int64_t> shape, size_t extent) {
  shape[split_dimension(shape)] = static_cast<int64_t>(extent);
  return shape;
}

bool is_product(const Layer& layer) {
  return layer.kind == LayerKind::kAffine || layer.kind == LayerKind::kConvolution;
}

// The region that begins with this product: up to the next one, if all between can work on a part.
std::optional<SplitRegion> region_of_products(const Architecture& whole, size_t begin) {
  size_t units = extent(whole.layers[begin].output);
  for (size_t i = begin + 1; i < whole.layers.size(); ++i) {
    const Layer& layer = whole.layers[i];
    switch (layer.kind) {
      case LayerKind::kRelu:
      case LayerKind::kGelu:
      case LayerKind::kMaxPool:
      case LayerKind::kAveragePool:
      case LayerKind::kFlatten:
      case LayerKind::kBatchNorm:
        break;
      case LayerKind::kDropout:  // whose part is one range
        if (layer.output.size() > 1) return std::nullopt;
        break;
      case LayerKind::kGroupNorm:  // a group stays together
        units = static_cast<size_t>(layer.groups);
        break;
      case LayerKind::kAttention:  // and so does a head
        if (i != begin + 1) return std::nullopt;
        units = static_cast<size_t>(layer.groups);
        break;
      case LayerKind::kAffine:
      case LayerKind::kConvolution:
        return SplitRegion{{begin, i + 1}, units};
      default:
        return std::nullopt;
    }
  }
  const bool is_scores = begin + 1 == whole.layers.size() && whole.place.last;
  if (is_scores && whole.classification) return SplitRegion{{begin, begin + 1}, units};
  return std::nullopt;
}

std::optional<SplitRegion> region_at(const Architecture& whole, size_t begin) {
  const Layer& layer = whole.layers[begin];
  if (is_product(layer)) return region_of_products(whole, begin);
  if (layer.kind != LayerKind::kEmbedding) return std::nullopt;
  const auto codes = static_cast<size_t>(whole.parameters[layer.parameters[0]].shape[0]);
  return SplitRegion{{begin, begin + 1}, codes};
}

class Sharding {
 public:
  Sharding(const Architecture& whole, size_t index, size_t count)
      : whole_(whole), index_(index), count_(count), shard_(whole) {
    shard_.layers.clear();
    shard_.parameters.clear();
    shard_.parameter_count = 0;
    shard_.shard = {.index = index, .count = count};
  }

  Architecture run() {
    size_t next = 0;
    for (const SplitRegion& region : split_regions(whole_, count_)) {
      for (; next < region.layers.begin; ++next) keep(next);
      split(region);
      next = region.layers.end;
    }
    for (; next < whole_.layers.size(); ++next) keep(next);
    return std::move(shard_);
  }

 private:
  void keep(size_t index) {
    Layer layer = whole_.layers[index];
    if (layer.kind == LayerKind::kAdd) layer.skip = places_.at(layer.skip);
    places_.resize(index + 1);
    places_[index] = shard_.layers.size();
    for (const size_t parameter : layer.parameters) add_parameter(parameter, {});
    shard_.layers.push_back(std::move(layer));
  }

  void split(const SplitRegion& region) {
    const Range own = part_of(region.units, count_, index_);
    share_ = static_cast<double>(own.size()) / static_cast<double>(region.units);
    // Of a dimension with this extent.
    const auto part = [&](size_t of) {
      TUTTI_CHECK(of % region.units == 0);
      return Range{of / region.units * own.begin, of / region.units * own.end};
    };
    const Layer& first = whole_.layers[region.layers.begin];
    if (first.kind == LayerKind::kEmbedding) {
      Layer layer = first;
      layer.part = own;
      layer.whole = region.units;
      add_parameter(layer.parameters[0], {{}, 0, {own}});
      shard_.layers.push_back(std::move(layer));
      return combine(first);
    }
    shard_.layers.push_back({.kind = LayerKind::kSpread,
                             .name = first.name + ".spread",
                             .input = first.input,
                             .output = first.input,
                             .parameters = {},
                             .number = first.number});
    const bool is_pair = region.layers.size() > 1;
    const bool attends =
        is_pair && whole_.layers[region.layers.begin + 1].kind == LayerKind::kAttention;
    split_outputs(first, attends ? thirds(first, part) : std::vector{part(extent(first.output))});
    if (!is_pair) {
      shard_.shard.scores = own;
      return;
    }
    for (size_t i = region.layers.begin + 1; i + 1 < region.layers.end; ++i)
      pass(whole_.layers[i], part(extent(whole_.layers[i].output)));
    const Layer& last = whole_.layers[region.layers.end - 1];
    split_inputs(last, part(static_cast<size_t>(whole_.parameters[last.parameters[0]].shape[1])));
    combine(last);
  }

  // Query, key and value lie side by side; of each the same heads.
  template <class Part>
  static std::vector<Range> thirds(const Layer& layer, Part part) {
    const size_t width = extent(layer.output) / 3;
    const Range own = part(width);
    std::vector<Range> parts;
    for (size_t i = 0; i < 3; ++i) parts.push_back({i * width + own.begin, i * width + own.end});
    return parts;
  }

  void split_outputs(Layer layer, const std::vector<Range>& parts) {
    size_t outputs = 0;
    for (const Range part : parts) outputs += part.size();
    layer.output = with_extent(layer.output, outputs);
    layer.flops *= share_;
    for (const size_t parameter : layer.parameters) add_parameter(parameter, {{}, 0, parts});
    shard_.layers.push_back(std::move(layer));
  }

  // Between the two products: works on what there is of its input.
  void pass(Layer layer, Range part) {
    layer.input = shard_.layers.back().output;
    layer.part = part;
    layer.whole = extent(layer.output);
    layer.output = with_extent(layer.output, part.size());
    layer.flops *= share_;
    layer.groups = std::lround(static_cast<double>(layer.groups) * share_);
    for (const size_t parameter : layer.parameters) add_parameter(parameter, {{}, 0, {part}});
    shard_.layers.push_back(std::move(layer));
  }

  // Its bias is added once, to the sum.
  void split_inputs(Layer layer, Range part) {
    layer.input = shard_.layers.back().output;
    layer.flops = (layer.flops - bias_flops(layer)) * share_;
    layer.parameters.resize(1);
    add_parameter(layer.parameters[0], {{}, 1, {part}});
    shard_.layers.push_back(std::move(layer));
  }

  void combine(const Layer& summed) {
    Layer layer{.kind = LayerKind::kCombine,
                .name = summed.name + ".combine",
                .input = summed.output,
                .output = summed.output,
                .parameters = {},
                .flops = bias_flops(summed),
                .number = summed.number};
    if (summed.parameters.size() > 1) {
      layer.parameters = {summed.parameters[1]};
      add_parameter(summed.parameters[1], {});
    }
    shard_.layers.push_back(std::move(layer));
  }

  static double bias_flops(const Layer& layer) {
    return layer.parameters.size() > 1 ? static_cast<double>(elements(layer.output)) : 0;
  }

  // In the order of the whole model, so that a parameter keeps its number.
  void add_parameter(size_t number, Slice slice) {
    TUTTI_CHECK(number == shard_.parameters.size());
    Parameter parameter = whole_.parameters[number];
    if (!slice.parts.empty()) {
      slice.whole = parameter.shape;
      int64_t own = 0;
      for (const Range part : slice.parts) own += static_cast<int64_t>(part.size());
      parameter.shape[slice.dimension] = own;
      parameter.slice = std::move(slice);
    }
    const size_t begin = shard_.parameter_count;
    shard_.parameter_count += static_cast<size_t>(elements(parameter.shape));
    parameter.range = {begin, shard_.parameter_count};
    shard_.parameters.push_back(std::move(parameter));
  }

  const Architecture& whole_;
  size_t index_, count_;
  double share_ = 1;            // of a region's units
  std::vector<size_t> places_;  // of kept layers in the shard
  Architecture shard_;
};

}  // namespace

std::vector<SplitRegion> split_regions(const Architecture& whole, size_t shards) {
  std::vector<SplitRegion> regions;
  for (size_t i = 0; i < whole.layers.size();) {
    const auto region = region_at(whole, i);
    if (region && region->units >= shards) regions.push_back(*region);
    i = region ? region->layers.end : i + 1;
  }
  return regions;
}

std::vector<size_t> shard_cuts(const Architecture& whole, size_t shards) {
  std::vector<size_t> cuts = whole.cuts();
  if (shards == 1) return cuts;
  for (const SplitRegion& region : split_regions(whole, shards))
    std::erase_if(cuts,
                  [&](size_t cut) { return cut > region.layers.begin && cut < region.layers.end; });
  return cuts;
}

Architecture shard_of(const Architecture& whole, size_t index, size_t count) {
  TUTTI_CHECK(index < count);
  return count == 1 ? whole : Sharding(whole, index, count).run();
}

std::vector<ShardSum> forward_sums(const Architecture& shard) {
  std::vector<ShardSum> sums;
  double flops = 0;
  size_t layers = 0;
  for (size_t i = 0; i < shard.layers.size(); ++i) {
    const Layer& layer = shard.layers[i];
    if (layer.kind == LayerKind::kCombine)
      sums.push_back({i, static_cast<size_t>(elements(layer.output)), std::exchange(flops, 0),
                      std::exchange(layers, 0)});
    flops += layer.flops;
    ++layers;
  }
  return sums;
}

std::vector<ShardSum> backward_sums(const Architecture& shard) {
  size_t first = 0;
  if (shard.place.layer == 0)
    while (shard.layers[first].parameters.empty()) ++first;
  std::vector<ShardSum> sums;
  double flops = 0;
  size_t layers = 0;
  for (size_t i = shard.layers.size(); i-- > first;) {
    const Layer& layer = shard.layers[i];
    flops += 2 * layer.flops;
    ++layers;
    if (layer.kind == LayerKind::kSpread)
      sums.push_back({i, static_cast<size_t>(elements(layer.output)), std::exchange(flops, 0),
                      std::exchange(layers, 0)});
  }
  return sums;
}

}  // namespace tutti
