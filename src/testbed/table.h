// A comparison as a table for a terminal: sorted by time to target, best values marked, as many
// columns as fit. Measured and simulated figures have a table each: they are not of one machine.
#pragma once

#include <string>

#include "testbed/comparison.h"

namespace tutti {

struct TableOptions {
  size_t columns = 100;    // width of the terminal
  bool bold = false;       // a terminal: the best in bold instead of with a star, failures in red
  bool verbose = false;    // reasons in full, and definitions
  std::string group = {};  // a part of the taxonomy (jobs/plan_json.h), or empty
};

std::string comparison_table(const Comparison& comparison, const TableOptions& options);

}  // namespace tutti
