// Is this the comparison that reports and exports are made from? Asked once, where it comes in, so
// that everything after may rely on the types of what is there.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tutti {

inline constexpr int kComparisonSchema = 1;

// The figures of a strategy that are given over its seeds, as {"mean","min","max","values"} or
// null.
const std::vector<std::string>& statistics_of_a_strategy();

// Throws DataError that begins with `where` (a file), names the place and says what to do.
void check_comparison(const nlohmann::json& comparison, const std::string& where);

}  // namespace tutti
