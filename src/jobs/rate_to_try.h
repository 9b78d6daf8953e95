// Names the setting that is most likely at fault after a run that has learnt nothing.
#pragma once

#include <string>

#include "jobs/job.h"

namespace tutti {

// "optimizer.lr = 0.5 is large for adam: try 0.001", or both directions where the rate is a usual
// one. Also of the rate of a server that adapts.
std::string rate_to_try(const Job& job);

// The same after a loss that grew beyond all numbers: only lower rates help.
std::string lower_rate_to_try(const Job& job);

}  // namespace tutti
