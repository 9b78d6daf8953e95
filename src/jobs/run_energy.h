// The energy of a run and of its parts, from what the fabric and the nodes know of it.
#pragma once

#include "fabric/fabric.h"
#include "jobs/job.h"
#include "jobs/run_record.h"

namespace tutti {

// Fills in joules, energy_parts and energy_method. The joules are the sum of the parts, in order.
void add_energy(RunRecord& record, const Job& job, const FabricFigures& figures);

}  // namespace tutti
