// One architecture judged for one cluster: what it takes to reach the target, and why.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "testbed/learning.h"
#include "testbed/step_simulation.h"

namespace tutti {

struct Choice {
  std::string name;
  Job job;                  // on its cluster, planned
  Job open;                 // the same job before it was planned
  std::string plan;         // in words; empty when there is nothing to plan
  std::string equivalence;  // of the plan
  StepFigures step;
  Learning learning;
  std::vector<double> times_s;  // to the target, of each seed that reached it
  double memory_bytes = 0;      // of the node that needs most
  bool fits = true;
  double cost_error = 0;  // of the model's cost, as it was fitted here; 0: it was declared

  bool reaches() const { return learning.reached > 0; }
  // To the target: the mean over the seeds that reached it.
  double time_s() const;
  // That time by its steps: each has its share of the evaluations.
  double step_s() const { return reaches() ? time_s() / learning.steps : step.step_s; }
  double joules() const { return time_s() * step.watts; }
  // The relative error of the time: the spreads over seeds and stragglers, the error of simulated
  // times against measured ones and that of the model's cost, taken as independent.
  double error() const;
};

// In the order in which to choose: those that reach the target and fit, fastest first.
void rank(std::vector<Choice>& choices);

// What its time goes into, in sentences.
std::vector<std::string> reasons(const Choice& choice);

nlohmann::json to_json(const Choice& choice);

}  // namespace tutti
