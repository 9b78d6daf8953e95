#include "core/error.h"
#include "core/random.h"
#include "models/layout.h"
#include "models/model.h"
#include "models/sparse_model.h"

namespace tutti {

// Drawn in PyTorch's order, so that a change of memory layout does not change the model.
void initialise(const Architecture& architecture, uint64_t seed, std::span<float> parameters) {
  TUTTI_CHECK(parameters.size() == architecture.parameter_count);
  const size_t width = architecture.row_width;
  for (size_t key = 0; key < architecture.rows(); ++key)
    initial_row(architecture, seed, key, parameters.subspan(key * width, width));
  if (width > 0) return;
  std::vector<float> values;
  for (size_t i = 0; i < architecture.parameters.size(); ++i) {
    const Parameter& parameter = architecture.parameters[i];
    Random random(seed, Stream::kInit, static_cast<uint32_t>(architecture.place.parameter + i));
    values.resize(parameter.range.size());
    for (float& value : values) {
      double drawn = parameter.init_mean;
      if (parameter.init_bound > 0) drawn += parameter.init_bound * (2 * random.uniform() - 1);
      if (parameter.init_deviation > 0) drawn += parameter.init_deviation * random.normal();
      value = static_cast<float>(drawn);
    }
    import_parameter(parameter, values, parameters);
  }
}

}  // namespace tutti
