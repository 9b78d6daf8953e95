// Assembles an Architecture layer by layer, keeping track of the shape that a sample has by then.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/architecture.h"

namespace tutti {

int64_t elements(const std::vector<int64_t>& shape);

class Builder {
 public:
  Builder(std::string kind, std::vector<int64_t> sample_shape);

  // Square kernel, stride 1, no padding. Throws ConfigError when the image is too small.
  Builder& convolution(int64_t channels, int64_t kernel);
  // Stride = kernel; a rest that does not fill a window is dropped, as PyTorch does.
  Builder& max_pool(int64_t kernel);
  Builder& flatten();  // nothing to do for samples that are flat already
  Builder& affine(int64_t outputs);
  Builder& relu();
  Builder& dropout(double probability);  // no layer when the probability is 0

  // Ends with the loss: cross-entropy over `classes` scores, or half the squared error when 0.
  Architecture finish(int64_t classes);

 private:
  Layer& append(LayerKind kind, std::string name, std::vector<int64_t> output, double flops);
  void add_parameter(const std::string& name, std::vector<int64_t> shape, int64_t fan_in,
                     bool channels_last);

  Architecture result_;
  std::vector<int64_t> shape_;  // of one sample after the layers so far
  int convolutions_ = 0;
  int affines_ = 0;
};

}  // namespace tutti
