// What `tutti report` is given on its command line, as one comparison.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "testbed/comparison.h"

namespace tutti {

// Makes a comparison of run folders.
using SummariseRuns = std::function<Comparison(const std::vector<std::string>& folders)>;

// Each path is a compare.json, a folder that holds one, or the folder of a run. Several become one
// comparison, if they are of the same task. Throws DataError for what is damaged, ConfigError for
// what cannot be compared.
Comparison read_comparisons(const std::vector<std::string>& paths, const SummariseRuns& summarise);

}  // namespace tutti
