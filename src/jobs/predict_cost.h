// What a job will take, as far as it can be known before it runs.
#pragma once

#include <optional>

#include "jobs/job.h"

namespace tutti {

// Memory of the worker that needs most, as its strategy counts it.
// predicted_memory_by_node() returns the memory of each node instead, workers first.
std::vector<double> predicted_memory_by_node(const Job& job, const Architecture& architecture,
                                             size_t samples);
double predicted_memory_bytes(const Job& job, const Architecture& architecture, size_t samples = 0);

// Of a virtual cluster: the first worker that needs more than its node has. Of processes: all
// workers of this machine together, where they need more than it has.
struct Shortage {
  int64_t worker = 0;   // virtual: which
  int64_t workers = 1;  // how many share what is there
  double needed_bytes = 0, there_bytes = 0;
};
std::optional<Shortage> shortage_of_memory(const Job& job, const Architecture& architecture,
                                           size_t samples = 0);

// What processes of this machine can have: its memory, or the limit of the container around them.
double machine_memory_bytes();

int64_t predicted_steps(const Job& job, const Data& data);
// Returns the samples of all these steps; 0 when the batches do not determine it.
int64_t predicted_samples(const Job& job, const Data& data);

}  // namespace tutti
