// The node that says which coordinates are updated next.
#pragma once

#include "strategies/scheduled/config.h"

namespace tutti {

void run_coordinate_scheduler(Context& context, const ScheduledConfig& config);

}  // namespace tutti
