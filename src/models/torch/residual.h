// A skip and its add: the two ends of a residual block, with what passes beside the block.
#pragma once

#include <memory>

#include "models/torch/operation.h"

namespace tutti {

// Forward the input of the block, backward the gradient by its output.
struct Bypass {
  at::Tensor kept, slope;
};

// The layer above must not overwrite its input, which is still needed.
class Skip : public Operation {
 public:
  explicit Skip(std::shared_ptr<Bypass> bypass);
  at::Tensor forward(const at::Tensor& x, const Pass& pass) override;
  at::Tensor backward(const at::Tensor& slope, bool input_needed) override;

 private:
  std::shared_ptr<Bypass> bypass_;
};

// Works in place. Where the block halved the image and raised the number of channels, adds every
// other pixel to the first channels: He et al.'s option A, without parameters.
class Add : public Operation {
 public:
  explicit Add(std::shared_ptr<Bypass> bypass);
  at::Tensor forward(const at::Tensor& x, const Pass& pass) override;
  at::Tensor backward(const at::Tensor& slope, bool input_needed) override;

 private:
  std::shared_ptr<Bypass> bypass_;
};

}  // namespace tutti
