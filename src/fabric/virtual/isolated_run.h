// Runs something in a child process and brings its result back.
//
// SimGrid has one engine per process, keeps state in globals and aborts on internal errors. A child
// per simulation lets a program run many, and turns an abort into an error. The child dies with its
// parent.
#pragma once

#include <atomic>
#include <functional>
#include <string>

namespace tutti::simulation {

// `work` runs in the child, with a function that says whether `stop` was raised in the parent. What
// it returns is returned here; what it throws, or a death of the child, becomes an Error.
std::string run_isolated(const std::function<std::string(const std::function<bool()>&)>& work,
                         const std::atomic<bool>& stop);

}  // namespace tutti::simulation
