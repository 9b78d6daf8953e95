// Servers that are killed, some of which come back.
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "core/random.h"
#include "tests/strategies/parameter_server/runs.h"

namespace tutti::testing_support {

inline double duration_s(Job job) {
  double longest_s = 0;
  for (const NodeReport& node : run_job(job).nodes) longest_s = std::max(longest_s, node.total_s);
  return longest_s;
}

// Some different servers, at random moments of the run.
inline void kill_servers(Job& job, int servers_count, int victims, double duration_s,
                         Random& random) {
  std::vector<int64_t> left;
  for (int i = 0; i < servers_count; ++i) left.push_back(job.cluster.workers + i);
  for (int i = 0; i < victims; ++i) {
    const auto pick = static_cast<std::ptrdiff_t>(random.below(left.size()));
    job.cluster.faults.push_back({.at_s = random.uniform() * duration_s,
                                  .nodes = {left[static_cast<size_t>(pick)]}});
    left.erase(left.begin() + pick);
  }
}

// Some servers are killed, one after the other, and come back after a while or not at all; a next
// one only when the chains may be whole again, and never the last but one for good. Returns when
// the last one is back.
inline double add_faults(Job& job, int servers_count, double longest_s, Random& random) {
  int for_good = 0;
  double at_s = 0, back_s = 0;
  for (int round = 0; round < 4; ++round) {
    at_s += (0.1 + 0.2 * random.uniform()) * longest_s;
    const auto victim = static_cast<int64_t>(random.below(static_cast<uint64_t>(servers_count)));
    const bool returns = random.below(3) != 0 || servers_count - for_good <= 2;
    for_good += !returns;
    const double restart_s = returns ? 0.05 * longest_s * random.uniform() : 0;
    job.cluster.faults.push_back({.at_s = at_s,
                                  .nodes = {job.cluster.workers + victim},
                                  .restart_s = restart_s});
    back_s = std::max(back_s, at_s + restart_s);
  }
  return back_s;
}

inline std::string describe(const Job& job) {
  std::string text;
  for (const FaultConfig& fault : job.cluster.faults)
    text += fmt::format("; rank {} at {} s, back after {} s", fault.nodes.front(), fault.at_s,
                        fault.restart_s);
  return text;
}

}  // namespace tutti::testing_support
