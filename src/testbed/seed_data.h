// The data of one seed of a job.
#pragma once

#include "jobs/job.h"

namespace tutti {

// Data that is generated is another one for each seed, as whoever trains with that seed has it; all
// other data is `loaded` whatever the seed.
Data data_of_seed(const Job& job, const Data& loaded);

}  // namespace tutti
