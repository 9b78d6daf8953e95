// What the figures of a comparison mean, a sentence each: printed under every table and chart.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace tutti {

nlohmann::json comparison_definitions();

}  // namespace tutti
