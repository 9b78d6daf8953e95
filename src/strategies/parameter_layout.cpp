#include "strategies/parameter_layout.h"

#include <algorithm>

namespace tutti {

Layout layout_of(const Architecture& architecture, Range range) {
  std::vector<Tensor> tensors;
  for (const Parameter& parameter : architecture.parameters) {
    const Range part{std::max(parameter.range.begin, range.begin),
                     std::min(parameter.range.end, range.end)};
    if (part.begin >= part.end) continue;
    Tensor tensor{parameter.shape,
                  {part.begin - range.begin, part.end - range.begin},
                  parameter.running_rate};
    if (parameter.channels_last) {
      const std::vector<int64_t>& s = parameter.shape;
      tensor.shape = {s.at(0), s.at(2), s.at(3), s.at(1)};
    }
    if (part != parameter.range) tensor.shape = {static_cast<int64_t>(part.size())};
    tensors.push_back(std::move(tensor));
  }
  return {range.size(), std::move(tensors)};
}

Layout outer_layout_of(const Architecture& architecture, Range range) {
  Layout layout = layout_of(architecture, range);
  for (Tensor& tensor : layout.tensors)
    if (tensor.running_rate > 0) tensor.running_rate = 1;
  return layout;
}

}  // namespace tutti
