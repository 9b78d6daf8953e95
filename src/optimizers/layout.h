// What an optimizer works on: a flat buffer, and the tensors that it holds.
//
// Most optimizers treat every value alike. Those whose step depends on norms or shapes of tensors
// need to know where each one begins.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/range.h"

namespace tutti {

struct Tensor {
  std::vector<int64_t> shape;  // as it lies in memory: the last dimension varies fastest
  Range range;                 // of the flat buffer
};

struct Layout {
  Layout(size_t values) : size(values) {  // NOLINT: a number of values is a layout: one vector
    if (values > 0) tensors.push_back({{static_cast<int64_t>(values)}, {0, values}});
  }
  Layout(size_t values, std::vector<Tensor> parts) : size(values), tensors(std::move(parts)) {}

  size_t size;
  std::vector<Tensor> tensors;  // in order, together the whole buffer
};

}  // namespace tutti
