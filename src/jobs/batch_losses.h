// The training loss of whole batches. During a run rank 0 writes series.csv with the loss of its
// own share, which gets smaller, and its loss noisier, the more workers there are. When all workers
// take each step together, their reports have the losses of the other shares.
#pragma once

#include <string>
#include <vector>

#include "jobs/node_report.h"

namespace tutti {

// Returns for each step the mean loss over the samples of all nodes that reported it. The value is
// NaN for steps in which all nodes know the same loss and none has a share of its own.
std::vector<double> batch_losses(const std::vector<NodeReport>& nodes);

// Replaces the losses of rank 0 in series.csv of this run folder. Throws DataError.
void write_batch_losses(const std::string& folder, const std::vector<NodeReport>& nodes);

}  // namespace tutti
