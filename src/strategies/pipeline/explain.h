// A pipeline's plan in words: which layers go where, and why.
#pragma once

#include <string>
#include <vector>

#include "strategies/pipeline/config.h"

namespace tutti {

// Returns a text such as "4 stages on 4 nodes x 2 replicas".
std::string pipeline_in_words(const PipelineConfig& config, const Plan& plan);
std::vector<std::string> explain_pipeline(const PipelineConfig& config, const Plan& plan);

}  // namespace tutti
