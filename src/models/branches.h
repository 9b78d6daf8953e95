// Branches: copies of a model's first layers side by side, each with parameters of its own and each
// on its part of a sample, and the rest of the model on what they make together.
//
// As an Architecture the branches lie one after the other, before the rest. They are no chain, so
// such a model is computed by its stages (stage.h): one for each branch, and those of the rest.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/architecture.h"

namespace tutti {

struct BranchPlan {
  size_t cut = 0;                  // layers of a branch; the rest of the model follows
  std::vector<std::string> names;  // of the branches: prefixes of their parameters
  std::vector<int64_t> view;       // shape of the part of a sample that a branch takes
  // From the shape that leaves a branch to the one that the rest takes.
  std::function<std::vector<int64_t>(const std::vector<int64_t>&)> fused;
};

// Throws ConfigError where the layers cannot take such shapes.
Architecture branched(const Architecture& whole, const BranchPlan& plan);

}  // namespace tutti
