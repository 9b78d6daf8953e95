// What a model costs on this machine: measured, for machines that are not here.
//
// All commands use one formula: a pass over a batch takes a fixed time, a time for each layer that
// it runs, and a time for each sample.
#pragma once

#include <span>
#include <vector>

#include "jobs/resolve.h"

namespace tutti {

// Timed passes, and how often each of the three costs occurs in them.
struct TimedPass {
  double layers = 0;   // a gradient runs each of them twice
  double samples = 0;  // in units of gradients: a forward pass is a third
  double seconds = 0;  // the median
  int64_t batch = 0;   // samples in the batch
  double weight = 1;   // of its error in the fit
};

struct PassCosts {
  double step_s = 0, layer_s = 0, sample_s = 0;
  double error = 0;  // root mean square error of the fit, relative to the times
  double seconds(const TimedPass& pass) const {
    return step_s + pass.layers * layer_s + pass.samples * sample_s;
  }
};

// Least squares of the relative errors; no cost is below 0.
PassCosts fit_pass_costs(std::span<const TimedPass> passes);

// Returns batch sizes to time, from 1 to `most`, evenly spread on a logarithmic scale: four or more
// if there are that many.
std::vector<int64_t> batches_to_time(int64_t most);

struct ModelCost {
  double sample_s = 0;         // forward and backward, one more sample of a batch, one thread
  double step_s = 0;           // of a gradient, for any batch
  double layer_s = 0;          // of each layer, forward or backward
  double flops = 0;            // per second, when samples dominate the time
  double reference_flops = 0;  // that the reference kernel gets
  double error = 0;            // of the fit
  double noise = 0;            // relative deviation of the rounds of timing, in kernel times
  int rounds = 0;              // that counted
  bool least_sample = false;   // a sample costs too little to be measured: sample_s is a bound
  std::vector<TimedPass> timed;
  double efficiency() const { return flops / reference_flops; }
  // Half the width of a 90 % interval around the time of a pass, relative to the kernel's: what the
  // fit is off, and what the machine did meanwhile. A load that lasts is in all rounds alike, so
  // more rounds do not narrow it.
  double half_width() const;
};

// Times passes of several batch sizes for a second or two, alternating with the reference kernel.
// A pass includes bringing its samples together.
ModelCost measure_model_cost(const Job& job, const Resolved& task);
// Returns the costs that the job's cluster declares, as if they had been measured.
ModelCost declared_model_cost(const Job& job, const Resolved& task);

// Makes the nodes of a cluster take the times of the model here, scaled by the reference kernel.
// `speed` becomes that of the model, and the overheads become the measured ones.
void use_model_cost(ClusterConfig& cluster, const ModelCost& cost);

// Returns the share of a gradient's time on the first node that does not grow with `samples`.
double fixed_share(const ClusterConfig& cluster, const Architecture& architecture, double samples);

}  // namespace tutti
