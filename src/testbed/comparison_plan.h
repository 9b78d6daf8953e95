// Which runs a comparison consists of, and which of them share a learning curve.
//
// Strategies of one equivalence class compute the same parameters, so on the virtual fabric the
// arithmetic is done once per class and seed, by a leader; the others simulate their own times for
// as many steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "testbed/variants.h"

namespace tutti {

struct PlannedRun {
  size_t compared = 0;           // index of the ComparedJob
  std::string name;              // "ring-seed1": its folder below runs/
  Job job;                       // with gradients of its own
  std::optional<size_t> leader;  // index of the run whose learning curve it shares
};

// What decides how a strategy learns: its equivalence class, the task and the optimizer, never the
// cluster. Empty for a strategy that is in no class.
std::string curve_class(const Job& job, const std::string& equivalence);

// Leaders come before those who follow them; runs that measure this machine come first.
std::vector<PlannedRun> plan_runs(const std::vector<ComparedJob>& compared,
                                  const std::vector<uint64_t>& seeds, bool share_curves);

// The job of a run that shares the curve of a leader that took so many steps.
Job follower_job(const Job& job, int64_t steps);

// True for runs that measure this machine and therefore want it for themselves.
bool runs_alone(const Job& job);

}  // namespace tutti
