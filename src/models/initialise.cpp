#include "core/error.h"
#include "core/random.h"
#include "models/layout.h"
#include "models/model.h"
#include "models/slice.h"
#include "models/sparse_model.h"

namespace tutti {
namespace {

// What a slice is cut from.
Parameter whole_of(const Parameter& slice) {
  Parameter whole = slice;
  whole.shape = slice.slice.whole;
  whole.slice = {};
  size_t size = 1;
  for (const int64_t extent : whole.shape) size *= static_cast<size_t>(extent);
  whole.range = {0, size};
  return whole;
}

void draw(const Parameter& parameter, Random random, std::span<float> values) {
  for (float& value : values) {
    double drawn = parameter.init_mean;
    if (parameter.init_bound > 0) drawn += parameter.init_bound * (2 * random.uniform() - 1);
    if (parameter.init_deviation > 0) drawn += parameter.init_deviation * random.normal();
    value = static_cast<float>(drawn);
  }
}

}  // namespace

// Drawn in PyTorch's order, so that a change of memory layout does not change the model. Shards
// draw whole parameters, one after the other, and keep their slices.
void initialise(const Architecture& architecture, uint64_t seed, std::span<float> parameters) {
  TUTTI_CHECK(parameters.size() == architecture.parameter_count);
  const size_t width = architecture.row_width;
  for (size_t key = 0; key < architecture.rows(); ++key)
    initial_row(architecture, seed, key, parameters.subspan(key * width, width));
  if (width > 0) return;
  std::vector<float> values, ordered;
  for (size_t i = 0; i < architecture.parameters.size(); ++i) {
    const Parameter& parameter = architecture.parameters[i];
    Random random(seed, Stream::kInit, static_cast<uint32_t>(architecture.place.parameter + i));
    const bool is_slice = !parameter.slice.parts.empty();
    const Parameter whole = is_slice ? whole_of(parameter) : parameter;
    values.resize(whole.range.size());
    draw(whole, random, values);
    if (!is_slice) {
      import_parameter(parameter, values, parameters);
      continue;
    }
    ordered.resize(values.size());
    import_parameter(whole, values, ordered);
    cut_slice(parameter, ordered,
              parameters.subspan(parameter.range.begin, parameter.range.size()));
  }
}

}  // namespace tutti
