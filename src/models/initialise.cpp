#include <algorithm>

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

// Draws the parameters of an architecture, one after the other.
class InitialValues {
 public:
  InitialValues(const Architecture& architecture, uint64_t seed)
      : architecture_(architecture), seed_(seed) {}

  // Drawn in PyTorch's order, so that a change of memory layout does not change the model. Shards
  // draw whole parameters and keep their slices.
  void of(size_t index, std::span<float> own) {
    Parameter parameter = architecture_.parameters[index];
    parameter.range = {0, parameter.range.size()};
    Random random(seed_, Stream::kInit,
                  static_cast<uint32_t>(architecture_.place.parameter + index));
    const bool is_slice = !parameter.slice.parts.empty();
    const Parameter whole = is_slice ? whole_of(parameter) : parameter;
    values_.resize(whole.range.size());
    draw(whole, random, values_);
    if (!is_slice) return import_parameter(parameter, values_, own);
    ordered_.resize(values_.size());
    import_parameter(whole, values_, ordered_);
    cut_slice(parameter, ordered_, own);
  }

 private:
  const Architecture& architecture_;
  uint64_t seed_;
  std::vector<float> values_, ordered_;
};

}  // namespace

void initialise(const Architecture& architecture, uint64_t seed, std::span<float> parameters) {
  TUTTI_CHECK(parameters.size() == architecture.parameter_count);
  const size_t width = architecture.row_width;
  for (size_t key = 0; key < architecture.rows(); ++key)
    initial_row(architecture, seed, key, parameters.subspan(key * width, width));
  if (width == 0) initialise(architecture, seed, {0, parameters.size()}, parameters);
}

void initialise(const Architecture& architecture, uint64_t seed, Range range,
                std::span<float> values) {
  TUTTI_CHECK(architecture.row_width == 0 && values.size() == range.size());
  InitialValues initial(architecture, seed);
  std::vector<float> cut;
  for (size_t i = 0; i < architecture.parameters.size(); ++i) {
    const Range own = architecture.parameters[i].range;
    const Range part{std::max(own.begin, range.begin), std::min(own.end, range.end)};
    if (part.begin >= part.end) continue;
    const std::span<float> place = values.subspan(part.begin - range.begin, part.size());
    if (part.size() == own.size()) {
      initial.of(i, place);
      continue;
    }
    cut.resize(own.size());
    initial.of(i, cut);
    std::copy_n(cut.data() + (part.begin - own.begin), part.size(), place.data());
  }
}

}  // namespace tutti
