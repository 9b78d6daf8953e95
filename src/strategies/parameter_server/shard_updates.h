// Carries out updates: the arithmetic that the state machine of a shard decides on.
//
// The head adds up the gradients that it holds, and puts what the others in the chain need to take
// the same step into the entry that goes to them.
#pragma once

#include "strategies/parameter_server/chain.h"
#include "strategies/parameter_server/clock_means.h"
#include "strategies/parameter_server/held_gradients.h"

namespace tutti::parameter_server {

class ShardUpdates {
 public:
  ShardUpdates(Context& context, Shard& shard, const HeldGradients& held)
      : context_(context), clock_(context.node.clock()), shard_(shard), held_(held) {}

  // At the head; `passes_on`: others come after it.
  void update(const output::Update& update, Chain::Item& item, bool passes_on);
  void revise(const output::Revise& revision, Chain::Item& item, bool passes_on);
  // At the others, with what came along.
  void follow(const output::Update& update, Chain::Item& item);
  void follow(const output::Revise& revision, Chain::Item& item);

  // Parameters and all that their next update depends on: the numbers, and the rest in `archive`.
  Buffer<float> save(Archive& archive);
  void restore(Archive& archive, std::span<const float> values);

 private:
  void update_rows(const output::Update& update, Chain::Item& item, bool passes_on);
  void pass_on(std::span<const float> gradient, size_t count, Chain::Item& item);
  void revise_by(const output::Revise& revision, std::span<const float> gradient);
  std::vector<size_t> slots_of(const std::vector<GradientName>& names) const;

  Context& context_;
  Clock& clock_;
  Shard& shard_;
  const HeldGradients& held_;
  ClockMeans means_;  // rate = "dynamic"
};

}  // namespace tutti::parameter_server
