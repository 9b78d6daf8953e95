// How a run ended, in one word.
#pragma once

#include <string_view>

#include "core/schema.h"

namespace tutti {

enum class RunStatus { kDone, kCollapsed, kDiverged, kPeerLost, kInterrupted, kFailed };
constexpr auto words(RunStatus) {
  return WordList<6>{"done", "collapsed", "diverged", "peer lost", "interrupted", "failed"};
}

// Reads the word of a record. A word that only another version has is not that of a run that is
// done.
inline bool ended_well(std::string_view status) {
  return value_of(status, RunStatus::kFailed) == RunStatus::kDone;
}

// Whether a run came to an end of its own. One that was stopped or crashed says nothing of what it
// would have come to.
inline bool came_to_an_end(std::string_view status) {
  const RunStatus known = value_of(status, RunStatus::kFailed);
  return known != RunStatus::kInterrupted && known != RunStatus::kFailed;
}

}  // namespace tutti
