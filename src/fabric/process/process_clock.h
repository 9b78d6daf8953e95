// The wall clock, counted from the start of the run, the same for all nodes of a machine; nodes
// elsewhere set theirs when the launcher gives the start.
#pragma once

#include <cstdint>

#include "fabric/node.h"

namespace tutti::process {

class Reactor;

int64_t monotonic_ns();
int64_t deadline_after(double timeout_s);  // in the same time

class ProcessClock : public Clock {
 public:
  explicit ProcessClock(Reactor& reactor);
  double now() const override;
  void sleep(double seconds) override;
  void charge(const Work& work) override;
  void begin_step() override;
  void begin_chunk() override {}
  double load() const override;
  double busy_s() const override;
  bool simulated() const override { return false; }
  Arithmetic arithmetic() const override { return Arithmetic(); }

 private:
  Reactor& reactor_;
  int64_t started_ns_;    // this node, which a restart begins later than the run
  double busy_before_s_;  // a forked node begins with no CPU time, but for its own set-up
};

}  // namespace tutti::process
