// NodeModel: what a node has of the model while it trains, set up as its plan says: the whole of
// it, the layers that are its own, or nothing.
#pragma once

#include <deque>
#include <memory>
#include <span>

#include "core/arithmetic.h"
#include "core/bytes.h"
#include "models/stage.h"
#include "strategies/plan.h"

namespace tutti {

class NodeModel {
 public:
  struct Making {
    const ModelMaker& maker;
    ModelOptions options = {};
    Arithmetic arithmetic{};          // where none is done memory is only reserved
    std::span<float> gradients = {};  // of a whole model, where they lie in memory that others see
  };
  // Memory for the layers that the plan gives this node, with their initial parameters.
  NodeModel(const Plan& plan, Rank rank, const Making& making);
  // A whole model that somebody else has made.
  explicit NodeModel(Model& whole);

  // All layers, whichever nodes have them.
  const Architecture& architecture() const { return architecture_; }

  // A node whose plan does not give it all layers must not ask for the whole model.
  bool is_whole() const { return whole_ != nullptr; }
  Model& whole() const;
  std::span<float> parameters() const { return whole().parameters(); }
  std::span<float> gradients() const { return whole().gradients(); }

  // The parameters of these layers, which this node has.
  std::span<float> parameters_of(Range layers);
  // What computes these layers, over their part of this node's memory.
  std::unique_ptr<StageModel> stage(Range layers);
  // What computes shard `index` of `count` of these layers (models/shard.h). Its memory is made
  // now.
  std::unique_ptr<StageModel> shard(Range layers, size_t index, size_t count, ShardGroup& group);

  // Writes initial parameters, also those that this node has no memory for.
  void initial_values(Range range, std::span<float> values) const;

  // Makes room for the parameters of all layers, puts those that this node has in their place, and
  // gives their own memory back: stages and shards that were made before must be gone. From now on
  // this node has the whole model, though without gradients. Where it has, nothing changes.
  std::span<float> make_whole();

  // How much memory this node's parameters and gradients take, without what somebody else has made.
  size_t bytes() const;

 private:
  struct Part {
    Architecture architecture;
    Range layers;
    Buffer<float> parameters, gradients;
  };
  Part& add_part(Architecture architecture, Range layers);
  Part& part_with(Range layers);

  const Architecture& architecture_;
  ModelMaker maker_ = {};
  ModelOptions options_ = {};
  Arithmetic arithmetic_;
  std::deque<Part> parts_;
  Buffer<float> parameters_, gradients_;  // of the whole
  std::unique_ptr<Model> made_;
  Model* whole_ = nullptr;
};

}  // namespace tutti
