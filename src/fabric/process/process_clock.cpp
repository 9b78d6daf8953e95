#include "fabric/process/process_clock.h"

#include <algorithm>
#include <ctime>

#include "fabric/process/reactor.h"

namespace tutti::process {
namespace {

int64_t read_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

double cpu_s() { return static_cast<double>(read_ns(CLOCK_PROCESS_CPUTIME_ID)) * 1e-9; }

}  // namespace

int64_t monotonic_ns() { return read_ns(CLOCK_MONOTONIC); }

int64_t deadline_after(double timeout_s) {
  constexpr double kLongestS = 1e9;  // thirty years: what infinity means here
  return monotonic_ns() + static_cast<int64_t>(std::clamp(timeout_s, 0.0, kLongestS) * 1e9);
}

ProcessClock::ProcessClock(Reactor& reactor)
    : reactor_(reactor), started_ns_(monotonic_ns()), busy_before_s_(cpu_s()) {}

double ProcessClock::now() const {
  return static_cast<double>(monotonic_ns() - reactor_.board().start_ns()) * 1e-9;
}

void ProcessClock::sleep(double seconds) { reactor_.sleep(seconds); }

void ProcessClock::charge(const Work&) { reactor_.check_stop(); }

void ProcessClock::begin_step() {
  reactor_.board().steps(reactor_.rank()).fetch_add(1, std::memory_order_relaxed);
}

double ProcessClock::busy_s() const { return cpu_s() - busy_before_s_; }

double ProcessClock::load() const {
  const double elapsed_s = static_cast<double>(monotonic_ns() - started_ns_) * 1e-9;
  return elapsed_s > 0 ? std::min(1.0, busy_s() / elapsed_s) : 0;
}

}  // namespace tutti::process
