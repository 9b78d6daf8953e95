// One architecture judged for one cluster: what it takes to reach the target, and why.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "testbed/interval.h"
#include "testbed/learning.h"
#include "testbed/step_simulation.h"

namespace tutti {

// Half widths of 90 % intervals around a time to the target, relative to it (testbed/interval.h).
struct TimeErrors {
  double seeds = 0;       // another seed takes other steps, and meets other stragglers
  double simulation = 0;  // what was simulated stands for the rest of the run
  double cost = 0;        // of the model, as it was measured here
  double network = 0;     // of simulated networks against real ones
  double history = 0;     // what real runs were off, beyond the others

  double of_a_simulation() const;  // without what only real runs add
  double all() const;              // taken as independent
};

struct Choice {
  std::string name;
  Job job;                  // on its cluster, planned
  Job open;                 // the same job before it was planned
  std::string plan;         // in words; empty when there is nothing to plan
  std::string equivalence;  // of the plan
  StepFigures step;
  Learning learning;
  std::vector<double> times_s;  // to the target, of each seed that reached it
  double simulation_error = 0;  // of these: half the width of a 90 % interval, relative
  std::optional<Spread> lent;   // of other choices over their seeds, where this one ran once
  double memory_bytes = 0;      // of the node that needs most
  bool fits = true;
  double cost_error = 0;     // of the model's cost, likewise; 0: it was declared
  double history_error = 0;  // half the interval that real runs of earlier predictions lie in
  int64_t of_nodes = 0;      // where it was tried without some of the cluster's: how many there are
  bool fastest = false;      // it has the fastest of them
  std::optional<ClusterConfig> whole;  // with all of them
  // What its time assumes as long as its learning curve is not known: "it learns like solo".
  std::string assumed;
  std::string left_out;  // why it gets none

  bool is_judged() const { return reaches() && fits && assumed.empty(); }

  bool reaches() const { return learning.reached > 0; }
  // Whether every seed that ran got there: who misses now and then is not chosen before them.
  bool always_reaches() const { return reaches() && learning.reached >= learning.runs; }
  // To the target: the mean over the seeds that reached it.
  double time_s() const;
  // That time by its steps: each has its share of the evaluations.
  double step_s() const { return reaches() ? time_s() / learning.steps : step.step_s; }
  double joules() const { return time_s() * step.watts; }
  TimeErrors errors() const;
  double error() const { return errors().all(); }
};

// In the order in which to choose: those that reach the target with every seed and fit, fastest
// first; then those that miss it with some; then those of which it is assumed that they reach it.
void rank(std::vector<Choice>& choices);

// Who ran once cannot say how much seeds differ: the spread of those that ran more often stands in.
void lend_spreads(std::vector<Choice>& choices);

// "on 8 nodes", "on the 6 fastest nodes", "with 4 workers".
std::string where(const Choice& choice);
double machines(const Choice& choice);

// What its time goes into, in sentences.
std::vector<std::string> reasons(const Choice& choice);

}  // namespace tutti
