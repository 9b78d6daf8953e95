// How the end of a node's body becomes an outcome: one mapping, the same on every fabric.
#pragma once

#include <exception>
#include <string>

#include "fabric/fabric.h"

namespace tutti {

// Thrown by a body that failed but has something to show: the outcome is that of `cause`, with
// `result` beside it, so that the record of an interrupted run is kept.
struct PartialResult {
  std::string result;
  std::exception_ptr cause;
};

// Exit codes of the program, and of a node within it; docs/definitions name them.
inline constexpr int kExitDone = 0;
inline constexpr int kExitInternal = 1;
inline constexpr int kExitBadJob = 2;
inline constexpr int kExitDiverged = 3;
inline constexpr int kExitPeerLost = 4;
inline constexpr int kExitNotConfirmed = 5;  // of `tutti verify`
inline constexpr int kExitInterrupted = 130;

// Runs `body` and turns whatever leaves it into an outcome, kDone, kFailed or kInterrupted. No
// std::exception escapes; what is not one (a fabric that unwinds a killed node) passes through.
NodeOutcome run_body(const Fabric::Body& body, Node& node);

}  // namespace tutti
