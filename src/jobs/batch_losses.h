// The training loss of whole batches. Rank 0 writes series.csv while a run goes on, with the loss
// of its own share: that is smaller, and its loss noisier, the more workers there are. Where all
// workers take a step together, their reports say what the others' shares had.
#pragma once

#include <string>
#include <vector>

#include "jobs/node_report.h"

namespace tutti {

// Of each step: the mean over the samples of all nodes that reported it. Not a number where no node
// has a share of its own, and all know the same loss.
std::vector<double> batch_losses(const std::vector<NodeReport>& nodes);

// Puts them in the place of rank 0's in series.csv of this run folder. Throws DataError.
void write_batch_losses(const std::string& folder, const std::vector<NodeReport>& nodes);

}  // namespace tutti
