// Asks for a stop after a while: by a timer, as a user's Ctrl-C comes, and not by a thread. Whoever
// forks beside a thread may copy a lock that it holds, such as that of a sanitizer's allocator.
#pragma once

#include <sys/time.h>

#include <atomic>
#include <csignal>

namespace tutti::testing_support {

class StopLater {
 public:
  explicit StopLater(int milliseconds) {
    flag() = false;
    struct sigaction action {};
    action.sa_handler = [](int) { flag() = true; };
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, nullptr);
    itimerval timer{};
    timer.it_value = {milliseconds / 1000, milliseconds % 1000 * 1000};
    setitimer(ITIMER_REAL, &timer, nullptr);  // which no child inherits
  }
  ~StopLater() {
    const itimerval never{};
    setitimer(ITIMER_REAL, &never, nullptr);
    std::signal(SIGALRM, SIG_DFL);
  }
  StopLater(const StopLater&) = delete;
  StopLater& operator=(const StopLater&) = delete;

  const std::atomic<bool>& requested() const { return flag(); }

 private:
  static std::atomic<bool>& flag() {
    static std::atomic<bool> requested{false};
    return requested;
  }
};

}  // namespace tutti::testing_support
