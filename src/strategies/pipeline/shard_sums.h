// The sums within a stage whose layers are spread over shards, carried by messages.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collectives/all_reduce.h"
#include "models/shard.h"
#include "strategies/pipeline/placement.h"
#include "strategies/strategy.h"

namespace tutti {

class ShardSums : public ShardGroup {
 public:
  ShardSums(Context& context, const Placement& placement, const PipelineConfig& config,
            size_t replica, size_t stage, size_t shard);

  // The pass that the next sums belong to. The arithmetic before each of them is charged when it
  // is due, so that time passes in the order in which it does.
  void begin_forward(uint64_t step, size_t micro_batch, size_t samples);
  void begin_backward(uint64_t step, size_t micro_batch, size_t samples);
  const Work& charged() const { return charged_; }  // in this pass

  void sum(std::span<float> values) override;
  void maximum(std::span<float> values) override;

 private:
  void begin(Tag tag, const std::vector<ShardSum>& sums, size_t micro_batch, size_t samples);
  void charge();
  void reduce(std::span<float> values, const Reduction& reduction);
  std::string what() const;

  Context& context_;
  Group group_;
  const TopologyEntry& topology_;
  size_t stage_;
  std::vector<std::string> layers_;  // their names
  std::vector<ShardSum> forward_, backward_;
  Tag tag_;
  const std::vector<ShardSum>* sums_ = nullptr;  // of this pass
  size_t next_ = 0;
  size_t micro_batch_ = 0;
  double samples_ = 0;
  Work charged_;
  // By reduction and number of values: micro-batches come in few sizes.
  std::map<std::pair<const Reduction*, size_t>, std::unique_ptr<AllReduce>> reductions_;
};

}  // namespace tutti
