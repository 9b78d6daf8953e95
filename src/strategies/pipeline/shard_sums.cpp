#include "strategies/pipeline/shard_sums.h"

#include <fmt/format.h>

#include "core/bytes.h"
#include "core/error.h"
#include "strategies/pipeline/shard_costs.h"

namespace tutti {

ShardSums::ShardSums(Context& context, const Placement& placement, const PipelineConfig& config,
                     size_t replica, size_t stage, size_t shard)
    : context_(context),
      group_{.ranks = {}, .index = shard, .racks = {}},
      topology_(topology(config.shard_topology)),
      stage_(stage) {
  for (size_t s = 0; s < placement.shards; ++s)
    group_.ranks.push_back(placement.rank_of(replica, stage, s));
  const Architecture own = part_of_stage(placement, context.model.architecture(), stage, shard);
  forward_ = forward_sums(own);
  backward_ = backward_sums(own);
  for (const Layer& layer : own.layers) layers_.push_back(layer.name);
}

void ShardSums::begin_forward(uint64_t step, size_t micro_batch, size_t samples) {
  begin(Tag(Purpose::kActivation, Tag::wrapped(step), stage_), forward_, micro_batch, samples);
}

void ShardSums::begin_backward(uint64_t step, size_t micro_batch, size_t samples) {
  begin(Tag(Purpose::kSlope, Tag::wrapped(step), stage_), backward_, micro_batch, samples);
}

void ShardSums::begin(Tag tag, const std::vector<ShardSum>& sums, size_t micro_batch,
                      size_t samples) {
  tag_ = tag;
  sums_ = &sums;
  next_ = 0;
  micro_batch_ = micro_batch;
  samples_ = static_cast<double>(samples);
  charged_ = {};
}

void ShardSums::sum(std::span<float> values) { reduce(values, kSumFloat); }

void ShardSums::maximum(std::span<float> values) { reduce(values, kMaximumFloat); }

// Beyond the sums of the layers are those of the loss, whose arithmetic is not counted.
std::string ShardSums::what() const {
  return next_ < sums_->size() ? layers_[(*sums_)[next_].layer] : "scores";
}

void ShardSums::charge() {
  if (next_ >= sums_->size()) return;
  const ShardSum& due = (*sums_)[next_];
  const Work work{.flops = samples_ * due.flops,
                  .memory_bytes = 0,
                  .passes = 0,
                  .layers = static_cast<double>(due.layers)};
  context_.node.clock().charge(work);
  charged_.flops += work.flops;
  charged_.layers += work.layers;
}

void ShardSums::reduce(std::span<float> values, const Reduction& reduction) {
  charge();
  auto& all_reduce = reductions_[{&reduction, values.size()}];
  if (!all_reduce)
    all_reduce = make_all_reduce(context_.node, &context_.watch,
                                 topology_.rounds(group_, values.size()), reduction);
  try {
    all_reduce->start(writable_bytes_of(values), tag_);
    all_reduce->finish();
  } catch (const FabricError& error) {
    throw FabricError(error.kind(), error.peer(),
                      fmt::format("shard {} of stage {} sums {} of micro-batch {}: {}",
                                  group_.index, stage_, what(), micro_batch_, error.what()));
  }
  ++next_;
}

}  // namespace tutti
