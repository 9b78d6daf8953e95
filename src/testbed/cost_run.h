// A run of which only the costs are simulated.
#pragma once

#include <atomic>

#include "jobs/job.h"
#include "jobs/run_record.h"

namespace tutti {

// What some strategies do depends on the values: then the arithmetic is done, outside of time.
// Throws Error when the run does not end well.
RunRecord run_costs(Job job, const Data& data, const std::atomic<bool>& stop);

}  // namespace tutti
