// What to change: the same question asked again for another network, another number of workers and
// another batch.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "jobs/resolve.h"
#include "testbed/choice.h"

namespace tutti {

struct WhatIf {
  const Resolved& task;
  LearningCache& cache;  // of what the batch question learns
  const Announce& announce;
  const std::atomic<bool>& stop;

  // The bandwidths, from a sixteenth to sixteen times the cluster's, at which another architecture
  // becomes the fastest.
  nlohmann::json bandwidth(const std::vector<Choice>& choices) const;
  // The time on 1, 2, 4, ... workers of the cluster, each time by the fastest architecture.
  nlohmann::json workers(const std::vector<Choice>& choices) const;
  // Steps to the target against the global batch for the best choice, and the batch with which it
  // would be fastest on this cluster.
  nlohmann::json batch(const Choice& best) const;
  // The most that sending a quarter of the bytes could save.
  nlohmann::json compression(const Choice& best) const;

 private:
  // The time to the target of the same choice on a changed job.
  double time_of(const Choice& choice, const Job& job) const;
  // The factor of the bandwidth between `low` and `high` from which on the second is faster.
  double flip_between(const Choice& below, const Choice& above, double low, double high) const;
};

// What does not fit a node's memory: data, model or both.
nlohmann::json memory_advice(const Choice& best, const Resolved& task);

}  // namespace tutti
