// Which architecture for this task on that cluster? Answered here, without owning the cluster:
// the model's cost is measured, each architecture's messages are simulated at full scale, and the
// steps to the target come from real gradients.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "testbed/advice.h"
#include "testbed/learning.h"

namespace tutti {

struct AdviseOptions {
  std::string cluster;                  // a file, or a recipe's name
  std::vector<std::string> strategies;  // variants; empty: all
  int seeds = 0;          // 0: as many as each curve needs to be told from others, at most 3
  bool quick = false;     // rank only: no what-ifs
  bool declared = false;  // the cluster's speed is what this model gets: do not measure
  double history = 0;     // half the interval that real runs of earlier predictions lie in
  double budget_s = 0;    // when to end with what there is; 0: when all is done
  // Learn everything, also what cannot win, and ask of the whole cluster alone.
  bool complete = false;
  std::string cache = {};  // the folder that keeps what was learned; empty: nothing is kept
  // Called with each new answer, in one sentence, and now and then while nothing else is said.
  std::function<void(const std::string&)> answered = [](const std::string&) {};
  std::function<void()> waiting = [] {};
  // Called once with what there is to say of the data, in lines, where there is something.
  std::function<void(const std::string&)> noticed = [](const std::string&) {};
  // When the question was asked: budgets and the first answer count from here.
  std::chrono::steady_clock::time_point asked = std::chrono::steady_clock::now();
};

// Throws ConfigError when the job has no target to reach, and InterruptedError when it is stopped
// before there is an answer; after that a stop ends it with the answer so far.
Advice advise(const Job& job, const AdviseOptions& options, const Announce& announce,
              const std::atomic<bool>& stop);

}  // namespace tutti
