// Runs that may lose nodes: launching them and saying in a word how every node ended.
#pragma once

#include "fabric/outcome.h"
#include "tests/support/jobs.h"

namespace tutti::testing_support {

// Every way in which a run may end, a letter per node. Anything else, or no end at all, is a
// defect.
inline std::string stated_outcome(const std::vector<NodeOutcome>& outcomes) {
  std::string result;
  for (const NodeOutcome& outcome : outcomes) {
    using Kind = NodeOutcome::Kind;
    if (outcome.error.find("deadlock") != std::string::npos) return "deadlock";
    if (outcome.kind == Kind::kFailed && outcome.exit_code != kExitPeerLost)
      return "unexpected: " + outcome.error;
    if (outcome.kind == Kind::kInterrupted) return "unexpected: interrupted";
    result += outcome.kind == Kind::kDone ? 'd' : outcome.kind == Kind::kLost ? 'l' : 'f';
  }
  return result;
}

inline RunRecord run_job(Job& job) {
  const std::atomic<bool> never{false};
  return launch(job, {.out = "", .keep_files = false, .progress = ProgressStyle::kNone}, never);
}

}  // namespace tutti::testing_support
