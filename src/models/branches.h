// Branches are copies of a model's first layers side by side. Each has its own parameters and takes
// its own part of a sample. The rest of the model takes what all branches make.
//
// In an Architecture the branches lie one after the other, before the rest. They are not a chain,
// so such a model is computed by its stages (stage.h): one for each branch, and those of the rest.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/architecture.h"

namespace tutti {

struct BranchPlan {
  size_t cut = 0;                  // layers of a branch; the rest of the model follows
  std::vector<std::string> names;  // of the branches, which prefix their parameters
  std::vector<int64_t> view;       // shape of the part of a sample that a branch takes
  // Maps the output shape of a branch to the input shape of the rest.
  std::function<std::vector<int64_t>(const std::vector<int64_t>&)> fused;
};

// Throws ConfigError when the layers cannot take such shapes.
Architecture branched(const Architecture& whole, const BranchPlan& plan);

}  // namespace tutti
