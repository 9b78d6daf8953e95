// What a job will take, as far as it can be known before it runs.
#pragma once

#include "jobs/job.h"

namespace tutti {

// Memory of the worker that needs most, as its strategy counts it.
double predicted_memory_bytes(const Job& job, const Architecture& architecture, size_t samples = 0);

int64_t predicted_steps(const Job& job, const Data& data);

}  // namespace tutti
