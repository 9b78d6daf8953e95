// A comparison in the formats of tools people already use.
#pragma once

#include <string>

#include "testbed/comparison.h"

namespace tutti {

// All write every point: nothing is thinned here.

// One row per strategy. Statistics become three columns: NAME, NAME_min, NAME_max.
std::string csv_of_strategies(const Comparison& comparison);
// Long form: strategy, seed, source (evaluation | training), step, samples, epoch, time_s, bytes,
// loss, quality.
std::string csv_of_curves(const Comparison& comparison);

// Chrome's trace format, read by Perfetto and chrome://tracing: a process per strategy, a thread
// per node. Intervals of one node that overlap without nesting go to further threads.
std::string chrome_trace(const Comparison& comparison);

// One folder per strategy and seed below `folder`, each with an event file: train/loss, and
// evaluation/loss and evaluation/METRIC. Returns how many runs were written. Throws DataError when
// a file cannot be written.
size_t write_tensorboard(const Comparison& comparison, const std::string& folder);

}  // namespace tutti
