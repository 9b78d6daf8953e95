// What a model costs on this machine: measured, for machines that are not here.
//
// One formula for all commands: a pass over a batch takes a fixed time, a time for each layer that
// it runs, and a time for each sample.
#pragma once

#include <span>
#include <vector>

#include "jobs/job.h"

namespace tutti {

// Passes that were timed, and how often each of the three costs is in them.
struct TimedPass {
  double layers = 0;   // a gradient runs each of them twice
  double samples = 0;  // in gradients: a forward pass is a third of one
  double seconds = 0;  // the median
  int64_t batch = 0;   // samples that it was over
};

struct PassCosts {
  double step_s = 0, layer_s = 0, sample_s = 0;
  double error = 0;  // of the fit: the root of the mean square, relative to what was timed
  double seconds(const TimedPass& pass) const {
    return step_s + pass.layers * layer_s + pass.samples * sample_s;
  }
};

// Least squares of the relative errors; no cost is below 0.
PassCosts fit_pass_costs(std::span<const TimedPass> passes);

// Batch sizes to time: four or more, from 1 to `most`, evenly spread on a logarithmic scale; fewer
// only where there are not as many.
std::vector<int64_t> batches_to_time(int64_t most);

struct ModelCost {
  double sample_s = 0;         // forward and backward, one more sample of a batch, one thread
  double step_s = 0;           // of a gradient, whatever its batch
  double layer_s = 0;          // of each layer, forward and backward alike
  double flops = 0;            // that the model gets per second where samples are what takes time
  double reference_flops = 0;  // that the reference kernel gets
  double error = 0;            // of the fit
  std::vector<TimedPass> timed;
  double efficiency() const { return flops / reference_flops; }
};

// Times passes of several batch sizes for a second or two, alternating with the reference kernel.
ModelCost measure_model_cost(const Job& job, const Prepared& prepared);
// As if the model got the speed and took the overheads that the cluster of the job declares.
ModelCost declared_model_cost(const Job& job, const Prepared& prepared);

// Makes a cluster's nodes take what the model takes here, scaled by the reference kernel: its
// `speed` becomes the model's, and its overheads those that were measured.
void use_model_cost(ClusterConfig& cluster, const ModelCost& cost);

// Of a gradient on `samples` samples on the first node: the share that does not grow with them.
double fixed_share(const ClusterConfig& cluster, const Architecture& architecture, double samples);

}  // namespace tutti
