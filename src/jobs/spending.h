// What this machine spends on a comparison, a survey or a search: its own energy, whatever the runs
// simulate.
#pragma once

#include <chrono>
#include <string>

#include "core/described.h"
#include "jobs/energy.h"
#include "jobs/footprint.h"

namespace tutti {

// Written into compare.json and survey.json.
struct Spent {
  double wall_s = 0, cpu_s = 0, joules = 0, kwh = 0, co2e_g = 0;
  double cost = 0;
  std::string currency;
  std::string method;  // how the energy was obtained
};
void visit(RecordVisitor& visitor, Spent& spent);

// Adds what an earlier part of the same work spent.
Spent operator+(const Spent& one, const Spent& other);

// For people, in a line.
std::string spent_text(const Spent& spent);

// Counts from its construction: this process and those that it has started and waited for.
class Spending {
 public:
  explicit Spending(const FootprintConfig& config);
  // The counters of energy wrap around: call this more often than once a minute.
  void sample();
  Spent so_far();

 private:
  using Clock = std::chrono::steady_clock;

  FootprintConfig config_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point sampled_ = start_;
  double cpu_before_s_;
  EnergyCounters counters_;
};

}  // namespace tutti
