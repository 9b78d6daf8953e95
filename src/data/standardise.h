// Features with mean 0 and deviation 1.
#pragma once

#include <span>

#include "data/dataset.h"

namespace tutti {

// Shifts and scales each feature by its mean and deviation over `samples` (those that are trained
// on: nothing of the others may leak in). Features that never change become 0.
std::shared_ptr<const Dataset> standardised(std::shared_ptr<const Dataset> dataset,
                                            std::span<const uint32_t> samples);

// The same shifts and scales for other samples, if `trained_on` has any.
std::shared_ptr<const Dataset> standardised_like(const Dataset& trained_on,
                                                 std::shared_ptr<const Dataset> dataset);

}  // namespace tutti
