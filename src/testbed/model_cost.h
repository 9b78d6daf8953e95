// What a model costs on this machine: measured, for machines that are not here.
#pragma once

#include "jobs/job.h"

namespace tutti {

struct ModelCost {
  double sample_s = 0;         // forward and backward, one sample of a batch, one thread
  double flops = 0;            // that the model gets per second
  double reference_flops = 0;  // that the reference kernel gets
  double efficiency() const { return flops / reference_flops; }
};

// Computes gradients for about a second, alternating with the reference kernel.
ModelCost measure_model_cost(const Job& job, const Prepared& prepared);
// As if the model got the speed that the cluster of the job declares.
ModelCost declared_model_cost(const Job& job, const Prepared& prepared);

}  // namespace tutti
