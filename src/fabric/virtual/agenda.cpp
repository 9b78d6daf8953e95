#include "fabric/virtual/agenda.h"

#include <algorithm>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u/Engine.hpp>
#include <utility>

namespace tutti::simulation {

double now() { return simgrid::s4u::Engine::get_clock(); }

uint64_t Agenda::at(double time_s, Action action) {
  const uint64_t entry = next_++;
  timers_[entry] = simgrid::kernel::timer::Timer::set(std::max(time_s, now()),
                                                      [this, entry, action = std::move(action)] {
                                                        timers_.erase(entry);
                                                        action();
                                                      });
  return entry;
}

void Agenda::cancel(uint64_t entry) {
  const auto found = timers_.find(entry);
  if (found == timers_.end()) return;
  found->second->remove();
  timers_.erase(found);
}

void Agenda::soon(Action action) {
  simgrid::kernel::timer::Timer::set(now(), [action = std::move(action)] { action(); });
}

void Agenda::clear() {
  for (const auto& [entry, timer] : timers_) timer->remove();
  timers_.clear();
}

}  // namespace tutti::simulation
