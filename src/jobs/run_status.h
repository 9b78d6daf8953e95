// How a run ended, in one word, and how its times were obtained.
#pragma once

#include <string_view>

#include "core/recorded_word.h"

namespace tutti {

enum class RunStatus { kDone, kCollapsed, kDiverged, kPeerLost, kInterrupted, kFailed };
constexpr auto words(RunStatus) {
  return WordList<6>{"done", "collapsed", "diverged", "peer lost", "interrupted", "failed"};
}

// On a wall clock or on a virtual one.
enum class Obtained { kMeasured, kSimulated };
constexpr auto words(Obtained) { return WordList<2>{"measured", "simulated"}; }

// Reads the word of a record. A word that only another version has is not that of a run that is
// done.
inline bool ended_well(std::string_view status) { return says(status, RunStatus::kDone); }

// Whether a run came to an end of its own. One that was stopped or crashed says nothing of what it
// would have come to.
inline bool came_to_an_end(std::string_view status) {
  const RunStatus known = value_of(status, RunStatus::kFailed);
  return known != RunStatus::kInterrupted && known != RunStatus::kFailed;
}

// Whether its training came to an end of its own: it learned what there was to learn, or failed to.
inline bool learned_to_the_end(std::string_view status) {
  return came_to_an_end(status) && !says(status, RunStatus::kPeerLost);
}

}  // namespace tutti
