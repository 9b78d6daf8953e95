#include "strategies/node_model.h"

#include <algorithm>

#include "core/error.h"
#include "models/shard.h"
#include "models/slice.h"

namespace tutti {

NodeModel::NodeModel(const Plan& plan, Rank rank, const Making& making)
    : architecture_(*plan.architecture),
      maker_(making.maker),
      options_(making.options),
      arithmetic_(making.arithmetic) {
  const NodePlan& own = plan.nodes[static_cast<size_t>(rank)];
  if (!own.has_model) return;
  if (!own.has_all_layers(architecture_)) {
    for (const Range layers : own.layers) add_part(stage_of(architecture_, layers), layers);
    return;
  }
  // A model of rows holds those that its batches touch.
  const bool holds_rows = architecture_.row_width > 0 && plan.rows == RowUse::kSpread;
  const size_t count = holds_rows ? 0 : architecture_.parameter_count;
  parameters_ = Buffer<float>(count);
  if (making.gradients.empty()) gradients_ = Buffer<float>(count);
  if (!holds_rows)
    arithmetic_.perform([&] { initialise(architecture_, options_.seed, parameters_.span()); });
  made_ = maker_.whole(
      architecture_,
      {parameters_.span(), making.gradients.empty() ? gradients_.span() : making.gradients},
      options_);
  whole_ = made_.get();
}

NodeModel::NodeModel(Model& whole) : architecture_(whole.architecture()), whole_(&whole) {}

Model& NodeModel::whole() const {
  TUTTI_CHECK(whole_);
  return *whole_;
}

NodeModel::Part& NodeModel::add_part(Architecture architecture, Range layers) {
  const size_t count = architecture.parameter_count;
  Part& part = parts_.emplace_back(
      Part{std::move(architecture), layers, Buffer<float>(count), Buffer<float>(count)});
  arithmetic_.perform(
      [&] { initialise(part.architecture, options_.seed, part.parameters.span()); });
  return part;
}

NodeModel::Part& NodeModel::part_with(Range layers) {
  const auto found = std::find_if(parts_.begin(), parts_.end(), [&](const Part& part) {
    return part.layers.begin <= layers.begin && layers.end <= part.layers.end;
  });
  TUTTI_CHECK(found != parts_.end());
  return *found;
}

std::span<float> NodeModel::parameters_of(Range layers) {
  const Architecture own = stage_of(architecture_, layers);
  if (whole_) return part_of_memory({whole_->parameters(), {}}, architecture_, own).parameters;
  Part& part = part_with(layers);
  return part_of_memory({part.parameters.span(), {}}, part.architecture, own).parameters;
}

std::unique_ptr<StageModel> NodeModel::stage(Range layers) {
  if (whole_) return whole_->stage(layers);
  Part& part = part_with(layers);
  const Architecture own = stage_of(architecture_, layers);
  return maker_.part(
      own, part_of_memory({part.parameters.span(), part.gradients.span()}, part.architecture, own),
      options_, nullptr);
}

std::unique_ptr<StageModel> NodeModel::shard(Range layers, size_t index, size_t count,
                                             ShardGroup& group) {
  Part& part = add_part(shard_of(stage_of(architecture_, layers), index, count), layers);
  return maker_.part(part.architecture, {part.parameters.span(), part.gradients.span()}, options_,
                     &group);
}

void NodeModel::initial_values(Range range, std::span<float> values) const {
  arithmetic_.perform([&] { initialise(architecture_, options_.seed, range, values); });
}

std::span<float> NodeModel::make_whole() {
  if (whole_) return whole_->parameters();
  for (Part& part : parts_) part.gradients = {};
  parameters_ = Buffer<float>(architecture_.parameter_count);
  for (const Part& part : parts_) {
    const Architecture own = stage_of(architecture_, part.layers);
    arithmetic_.perform([&] {
      paste_shard(part.architecture, part.parameters.span(), own,
                  part_of_memory({parameters_.span(), {}}, architecture_, own).parameters);
    });
  }
  parts_.clear();
  made_ = maker_.whole(architecture_, {parameters_.span(), {}}, options_);
  whole_ = made_.get();
  return parameters_.span();
}

size_t NodeModel::bytes() const {
  size_t values = parameters_.size() + gradients_.size();
  for (const Part& part : parts_) values += part.parameters.size() + part.gradients.size();
  return values * sizeof(float);
}

}  // namespace tutti
