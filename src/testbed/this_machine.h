// This machine as a virtual cluster: as many workers as it has cores, all on one host. What is
// measured is written as a cluster file, so that it can be read, kept and changed.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "fabric/cluster.h"
#include "testbed/learning.h"

namespace tutti {

// How long an all-reduce of so many bytes takes between the processes of this machine.
struct SumTime {
  size_t bytes = 0;
  double direct_s = 0, ring_s = 0;
};

// Makes the simulated sums of a cluster of one host take these times as nearly as can be: by least
// squares of the relative errors. The cluster has its number of workers.
void fit_sums(ClusterConfig& cluster, std::span<const SumTime> times);
// The time that the cluster simulates for a sum by `direct`, and by `ring`.
double direct_time_of(const ClusterConfig& cluster, double bytes);
double ring_time_of(const ClusterConfig& cluster, double bytes);

struct MachineFigures {
  ClusterConfig cluster;
  std::vector<SumTime> sums;
};

// Measures it for some seconds. `workers` 0: one for each core. Throws InterruptedError.
MachineFigures measure_this_machine(int64_t workers, const Announce& announce,
                                    const std::atomic<bool>& stop);
std::string cluster_file_text(const MachineFigures& figures);

// Whether a cluster's name stands for this machine: `here`, unless there is a file of that name.
bool is_this_machine(const std::string& name);
// The file that describes it, `here.toml` in the user's cache. It is measured anew when that was
// done more than a day ago; which of both was done is announced.
std::string file_of_this_machine(const std::string& folder, const Announce& announce,
                                 const std::atomic<bool>& stop);

}  // namespace tutti
