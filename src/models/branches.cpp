#include "models/branches.h"

#include "core/error.h"
#include "models/builder.h"

namespace tutti {
namespace {

void repeat(Builder& builder, const Layer& layer) {
  switch (layer.kind) {
    case LayerKind::kConvolution:
      if (layer.padding > 0)
        builder.padded_convolution(layer.name, layer.output[0], layer.stride);
      else
        builder.convolution(layer.output[0], layer.kernel);
      return;
    case LayerKind::kAffine:
      builder.affine(layer.name, layer.output.back());
      return;
    case LayerKind::kRelu:
      builder.relu();
      return;
    case LayerKind::kMaxPool:
      builder.max_pool(layer.kernel);
      return;
    case LayerKind::kAveragePool:
      builder.average_pool();
      return;
    case LayerKind::kFlatten:
      builder.flatten();
      return;
    case LayerKind::kDropout:
      builder.dropout(layer.probability);
      return;
    case LayerKind::kGroupNorm:
      builder.group_norm(layer.name, layer.groups);
      return;
    case LayerKind::kBatchNorm:
      builder.batch_norm(layer.name, layer.ghost_batch);
      return;
    case LayerKind::kSkip:
      builder.skip(layer.name);
      return;
    case LayerKind::kAdd:
      builder.add(layer.name);
      return;
    default:
      throw ConfigError("task.model", "layer " + layer.name +
                                          " cannot take a part of a sample; use lenet, "
                                          "resnet20 or mlp");
  }
}

// Builds the same layers, with the same names, for samples of another shape.
Architecture on_shape(const Architecture& whole, Range layers, const std::vector<int64_t>& input) {
  Builder builder(whole.kind, input);
  for (size_t i = layers.begin; i < layers.end; ++i) repeat(builder, whole.layers[i]);
  Architecture part = builder.part();
  TUTTI_CHECK(part.layers.size() == layers.size());
  for (size_t i = 0; i < part.layers.size(); ++i) {
    const Layer& original = whole.layers[layers.begin + i];
    part.layers[i].name = original.name;
    for (size_t p = 0; p < original.parameters.size(); ++p)
      part.parameters[part.layers[i].parameters[p]].name =
          whole.parameters[original.parameters[p]].name;
  }
  return part;
}

void append(Architecture& all, const Architecture& part, const std::string& prefix) {
  const size_t first_layer = all.layers.size(), first_parameter = all.parameters.size();
  for (const Parameter& parameter : part.parameters) {
    all.parameters.push_back(parameter);
    Parameter& own = all.parameters.back();
    own.name = prefix + own.name;
    own.range = {own.range.begin + all.parameter_count, own.range.end + all.parameter_count};
  }
  for (const Layer& layer : part.layers) {
    all.layers.push_back(layer);
    Layer& own = all.layers.back();
    own.name = prefix + own.name;
    own.number += first_layer;
    if (own.kind == LayerKind::kAdd) own.skip += first_layer;
    for (size_t& parameter : own.parameters) parameter += first_parameter;
  }
  all.parameter_count += part.parameter_count;
}

}  // namespace

Architecture branched(const Architecture& whole, const BranchPlan& plan) {
  TUTTI_CHECK(plan.cut > 0 && plan.cut < whole.layers.size());
  Architecture all = whole;
  all.layers.clear();
  all.parameters.clear();
  all.parameter_count = 0;
  const Architecture branch = on_shape(whole, {0, plan.cut}, plan.view);
  for (const std::string& name : plan.names) {
    all.branches.push_back(all.layers.size());
    append(all, branch, name + ".");
  }
  const std::vector<int64_t> joint = plan.fused(branch.layers.back().output);
  append(all, on_shape(whole, {plan.cut, whole.layers.size()}, joint), "");
  return all;
}

}  // namespace tutti
