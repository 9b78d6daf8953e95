// What the figures of a comparison mean, a sentence each: printed under every table and chart.
#pragma once

#include <map>
#include <string>

namespace tutti {

// By the name of the figure. With one seed none speaks of several.
std::map<std::string, std::string> comparison_definitions(bool several_seeds);

}  // namespace tutti
