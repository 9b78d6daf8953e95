// A pipeline's plan in words: which layers go where, and why.
#pragma once

#include <string>
#include <vector>

#include "strategies/pipeline/config.h"

namespace tutti {

std::vector<std::string> explain_pipeline(const PipelineConfig& config, const Plan& plan);

}  // namespace tutti
