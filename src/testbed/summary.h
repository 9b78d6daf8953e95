// From runs to a comparison: figures over seeds, side by side.
#pragma once

#include <string>
#include <vector>

#include "testbed/row.h"

namespace tutti {

// `job` is what all contenders have in common: its task and its cluster head the comparison.
Comparison summarise(const std::string& name, Job& job, const std::vector<Contender>& contenders);

// The same from any run folders, also of different machines. Runs of the same job but for the seed,
// on the same machine if they measure it, become one strategy; its name is that of the job where
// this tells them apart, else that of its strategy. Throws DataError that names what cannot be
// read.
Comparison summarise_runs(const std::vector<std::string>& folders);

// One line per strategy and seed.
std::string comparison_csv(const Comparison& comparison);

}  // namespace tutti
