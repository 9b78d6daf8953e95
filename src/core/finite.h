// Whether all of many numbers are numbers: what tells that training has diverged.
#pragma once

#include <span>

namespace tutti {

bool all_finite(std::span<const float> values);

}  // namespace tutti
