// Between the flat buffer's order and PyTorch's.
//
// Convolution weights lie in memory as OHWI, because the arithmetic is faster with channels last.
// Whoever leaves or enters the program (files, checksums, initial values) uses PyTorch's OIHW.
#pragma once

#include <span>

#include "models/architecture.h"

namespace tutti {

// `flat` is the model's whole flat buffer; `out` receives this parameter's values.
void export_parameter(const Parameter& parameter, std::span<const float> flat,
                      std::span<float> out);

// The inverse: writes `values`, in PyTorch's order, into the parameter's range of `flat`.
void import_parameter(const Parameter& parameter, std::span<const float> values,
                      std::span<float> flat);

}  // namespace tutti
