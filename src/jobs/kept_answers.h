// Loads what a run has kept to answer new samples when its parameters alone are not enough.
#pragma once

#include <memory>
#include <string>

#include "jobs/job.h"
#include "models/model.h"

namespace tutti {

// Loads it from the folder of a run, for a model that has the parameters of that run and outlives
// the result. Returns nullptr when the model alone answers. Throws ConfigError when a file is
// missing, and DataError when it is damaged.
std::unique_ptr<Answerer> load_answerer(const std::string& folder, const Job& job, Model& model);

}  // namespace tutti
