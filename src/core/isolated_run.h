// Runs work in child processes and brings the results back.
//
// SimGrid has one engine per process, keeps state in globals and aborts on internal errors: a child
// per simulation lets a program run many, also several at once, and turns an abort into an error.
// Children die with their parent.
#pragma once

#include <atomic>
#include <functional>
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

}  // namespace tutti
