// The reference tasks: one recipe for each learning task of the field, on real data, with fixed
// hyper-parameters and a target that `solo` reaches. See docs/tasks.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jobs/job.h"

namespace tutti {

struct ReferenceTask {
  std::string_view name;      // also that of the recipe: recipes/tasks/NAME.toml
  std::string_view learning;  // what kind of learning task it stands for
  std::string_view summary;
  std::string_view remedy;  // gets its data onto a machine
};
const std::vector<ReferenceTask>& reference_tasks();

// The file of its recipe. Throws ConfigError when there is none.
std::string recipe_of(const ReferenceTask& task);

// The files that the data of a job is read from and that are not on this machine.
std::vector<std::string> missing_files(const Job& job);

}  // namespace tutti
