// Runs work in child processes and brings the results back.
//
// SimGrid has one engine per process, keeps state in globals and aborts on internal errors: a child
// per simulation lets a program run many, also several at once, and turns an abort into an error.
// Children die with their parent.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tutti {

// Runs in the child; the flag is raised there soon after it was raised in the parent.
using IsolatedWork = std::function<std::string(const std::atomic<bool>& stop)>;

// What `work` returns. What it throws, or a death of the child, becomes an Error that names `what`.
std::string run_isolated(const std::string& what, const IsolatedWork& work,
                         const std::atomic<bool>& stop);

// The results of all, in order, computed by as many children at once as there are cores. `begun` is
// told which one is started. The first that fails ends the others.
std::vector<std::string> run_side_by_side(const std::string& what,
                                          const std::vector<IsolatedWork>& works,
                                          const std::function<void(size_t)>& begun,
                                          const std::atomic<bool>& stop);

// Work that is chosen while other work runs, because what ended decides what is worth doing.
struct WorkQueue {
  // Returns what to run next, or nothing while nothing can be begun. The queue is over when nothing
  // can be begun and nothing runs.
  std::function<std::optional<IsolatedWork>()> next;
  // Is given the result of one work, counted from 0 in the order in which they were begun.
  std::function<void(size_t, std::string)> ended;
  // Is called every now and then. Where it returns false, what still runs is ended at once.
  std::function<bool()> goes_on;
};

// Runs at most as many children at once as there are cores. The first that fails ends the others;
// after a stop it throws InterruptedError.
void run_queue(const std::string& what, const WorkQueue& queue, const std::atomic<bool>& stop);

}  // namespace tutti
