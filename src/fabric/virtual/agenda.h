// What will happen at a known time: deadlines, sleeps, faults. A thin layer over SimGrid's timers
// that knows how many are pending, because a cluster in which nothing is pending is deadlocked.
//
// Actions run between the actors, in the simulator's own context: they may change anything but
// must not block.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

namespace simgrid::kernel::timer {
class Timer;
}

namespace tutti::simulation {

double now();

class Agenda {
 public:
  using Action = std::function<void()>;
  // Returns a number to cancel it by. A time in the past means now.
  uint64_t at(double time_s, Action action);
  void cancel(uint64_t entry);  // does nothing once it has run
  // As soon as the actors that can run now have run; does not count as pending.
  void soon(Action action);
  void clear();
  bool empty() const { return timers_.empty(); }

 private:
  std::map<uint64_t, simgrid::kernel::timer::Timer*> timers_;
  uint64_t next_ = 1;
};

}  // namespace tutti::simulation
