// How a run ended, in one word.
#pragma once

#include <string_view>

#include "core/schema.h"

namespace tutti {

enum class RunStatus { kDone, kCollapsed, kDiverged, kPeerLost, kInterrupted, kFailed };
constexpr auto words(RunStatus) {
  return WordList<6>{"done", "collapsed", "diverged", "peer lost", "interrupted", "failed"};
}

// Of the word in a record. One of a version that has more words is not that of a run that is done.
inline bool ended_well(std::string_view status) {
  return value_of(status, RunStatus::kFailed) == RunStatus::kDone;
}

}  // namespace tutti
