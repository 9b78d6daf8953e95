// What is not possible on a cluster, briefly.
#pragma once

#include <string>
#include <vector>

#include "testbed/comparison.h"

namespace tutti {

// A line for each reason, with all whom it keeps away: what fits so many columns.
std::string refusal_lines(const std::vector<Refusal>& refusals, size_t columns);

}  // namespace tutti
