// What optimizers need to know of a model: where its tensors lie, and their shapes.
#pragma once

#include "core/range.h"
#include "models/architecture.h"
#include "optimizers/layout.h"

namespace tutti {

// Of the parameters in `range`, counted from its beginning. A parameter that is cut by its borders
// becomes a vector.
Layout layout_of(const Architecture& architecture, Range range);
inline Layout layout_of(const Architecture& architecture) {
  return layout_of(architecture, {0, architecture.parameter_count});
}
// For optimizers that take the average change of the parameters for a gradient: running statistics
// become their average.
Layout outer_layout_of(const Architecture& architecture, Range range);

}  // namespace tutti
