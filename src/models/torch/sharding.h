// Where a split region of a model begins and ends: the two sums over shards.
#pragma once

#include "models/shard.h"
#include "models/torch/operation.h"
#include "models/torch/weights.h"

namespace tutti {

// Every shard goes on with the same values, so that the gradient by them is the sum of theirs.
class Spread : public Operation {
 public:
  explicit Spread(ShardGroup& group);
  at::Tensor forward(const at::Tensor& x, const Pass& pass) override;
  at::Tensor backward(const at::Tensor& slope, bool input_needed) override;

 private:
  ShardGroup& group_;
};

// Sums what each shard made of its part, in place, and adds the bias if there is one.
class Combine : public Operation {
 public:
  // `bias` and its gradient may be undefined.
  Combine(ShardGroup& group, at::Tensor bias, at::Tensor bias_slope);
  at::Tensor forward(const at::Tensor& x, const Pass& pass) override;
  at::Tensor backward(const at::Tensor& slope, bool input_needed) override;

 private:
  ShardGroup& group_;
  at::Tensor bias_, bias_slope_;
};

}  // namespace tutti
