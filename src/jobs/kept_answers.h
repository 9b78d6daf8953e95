// What a run has kept to answer new samples with, where that is more than the parameters.
#pragma once

#include <memory>
#include <string>

#include "jobs/job.h"
#include "models/model.h"

namespace tutti {

// Of the run in this folder, with a model that has its parameters. Nullptr where the model alone
// answers. Throws ConfigError where the folder lacks what it takes, and DataError where that is
// damaged. The model must outlive it.
std::unique_ptr<Answerer> load_answerer(const std::string& folder, const Job& job, Model& model);

}  // namespace tutti
