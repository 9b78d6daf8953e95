// What an optimizer works on: a flat buffer, and the tensors that it holds.
//
// Most optimizers treat every value alike. Those whose step depends on norms or shapes of tensors
// need to know where each one begins. Some tensors are not trained at all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/range.h"

namespace tutti {

struct Tensor {
  std::vector<int64_t> shape;  // as it lies in memory: the last dimension varies fastest
  Range range;                 // of the flat buffer
  // > 0: running statistics. In the place of its gradient stands how far each value is off, and a
  // step moves it by this share of that, whatever the optimizer (running_statistics.cpp).
  double running_rate = 0;
};

struct Layout {
  Layout(size_t values) : size(values) {  // NOLINT: a number of values is a layout: one vector
    if (values > 0) tensors.push_back({{static_cast<int64_t>(values)}, {0, values}});
  }
  Layout(size_t values, std::vector<Tensor> parts) : size(values), tensors(std::move(parts)) {}

  bool has_statistics() const {
    return std::any_of(tensors.begin(), tensors.end(),
                       [](const Tensor& tensor) { return tensor.running_rate > 0; });
  }

  size_t size;
  std::vector<Tensor> tensors;  // in order, together the whole buffer
};

}  // namespace tutti
