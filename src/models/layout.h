// Between the flat buffer's order and PyTorch's.
//
// Convolution weights lie in memory as OHWI, because the arithmetic is faster with channels last.
// Whoever leaves or enters the program (files, checksums, initial values) uses PyTorch's OIHW.
#pragma once

#include <span>

#include "core/range.h"
#include "models/architecture.h"
#include "optimizers/layout.h"

namespace tutti {

// `flat` is the model's whole flat buffer; `out` receives this parameter's values.
void export_parameter(const Parameter& parameter, std::span<const float> flat,
                      std::span<float> out);

// The inverse: writes `values`, in PyTorch's order, into the parameter's range of `flat`.
void import_parameter(const Parameter& parameter, std::span<const float> values,
                      std::span<float> flat);

// What an optimizer of `range` needs to know, counted from its beginning. A parameter that is cut
// by its borders becomes a vector.
Layout layout_of(const Architecture& architecture, Range range);
inline Layout layout_of(const Architecture& architecture) {
  return layout_of(architecture, {0, architecture.parameter_count});
}

}  // namespace tutti
