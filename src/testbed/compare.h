// `tutti compare`: one task under many architectures, each run a process of its own, the result one
// comparison. A comparison that was ended goes on where it was.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "jobs/job.h"
#include "jobs/progress.h"
#include "testbed/comparison.h"
#include "testbed/tuning.h"

namespace tutti {

struct CompareOptions {
  std::vector<std::string> strategies = {"all"};
  std::vector<uint64_t> seeds;   // empty: the job's
  std::string out;               // folder; empty: a new one below compare/
  size_t jobs = 0;               // virtual runs at once; 0: as many as there are cores
  std::optional<Tuning> tuning;  // what each strategy searches before it is compared
  bool share_curves = true;      // compute the gradients of equal strategies once
  bool strict = false;           // refuse damaged run folders instead of running them again
  double most_s = 0;             // then runs that are left count as interrupted; 0: no limit
  ProgressStyle progress = ProgressStyle::kNone;
  bool announces = true;                   // says that the same command goes on with the folder
  size_t columns = 100;                    // of the terminal that progress is shown on
  std::string program = "/proc/self/exe";  // what runs `train`
};

// Writes compare.json and compare.csv and returns what the former holds; `folder` is where.
// Runs that fail are rows that say so. Throws InterruptedError when `stop` was set.
Comparison compare(Job& job, const CompareOptions& options, const std::atomic<bool>& stop,
                   std::string& folder);

}  // namespace tutti
