#include "models/layout.h"

#include <algorithm>

#include "core/error.h"

namespace tutti {
namespace {

// Calls visit(position in PyTorch's order, position in memory) for each value of an OIHW weight.
template <class Visit>
void for_each_position(const Parameter& parameter, Visit visit) {
  const auto outputs = static_cast<size_t>(parameter.shape.at(0));
  const auto inputs = static_cast<size_t>(parameter.shape.at(1));
  const auto pixels = static_cast<size_t>(parameter.shape.at(2) * parameter.shape.at(3));
  for (size_t o = 0; o < outputs; ++o)
    for (size_t i = 0; i < inputs; ++i)
      for (size_t p = 0; p < pixels; ++p)
        visit((o * inputs + i) * pixels + p, (o * pixels + p) * inputs + i);
}

}  // namespace

void export_parameter(const Parameter& parameter, std::span<const float> flat,
                      std::span<float> out) {
  const std::span<const float> own = flat.subspan(parameter.range.begin, parameter.range.size());
  TUTTI_CHECK(out.size() == own.size());
  if (!parameter.channels_last) {
    std::copy(own.begin(), own.end(), out.begin());
    return;
  }
  for_each_position(parameter, [&](size_t torch, size_t memory) { out[torch] = own[memory]; });
}

void import_parameter(const Parameter& parameter, std::span<const float> values,
                      std::span<float> flat) {
  const std::span<float> own = flat.subspan(parameter.range.begin, parameter.range.size());
  TUTTI_CHECK(values.size() == own.size());
  if (!parameter.channels_last) {
    std::copy(values.begin(), values.end(), own.begin());
    return;
  }
  for_each_position(parameter, [&](size_t torch, size_t memory) { own[memory] = values[torch]; });
}

}  // namespace tutti
