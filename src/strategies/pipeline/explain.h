// A pipeline's plan in words: which layers go where, and why.
#pragma once

#include <string>
#include <vector>

#include "strategies/pipeline/placement.h"

namespace tutti {

// Returns a text such as "4 stages on 4 nodes x 2 replicas".
std::string shape_in_words(const Placement& placement);
std::vector<std::string> explain_pipeline(const Placement& placement, const PipelineConfig& config,
                                          const PlanInput& input);

}  // namespace tutti
