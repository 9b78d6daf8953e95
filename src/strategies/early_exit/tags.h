// Parts of the tags of an early-exit network's messages.
#pragma once

#include <cstdint>

namespace tutti {

// Of purpose kActivation.
inline constexpr uint64_t kTrainingPart = 0, kJudgingPart = 1, kAnsweringPart = 2;
// Of purpose kEvaluation; 0 and 1 are those of compute.h.
inline constexpr uint64_t kVerdictsPart = 2, kAnswersPart = 3, kSumsPart = 4;
// Of purpose kControl.
inline constexpr uint64_t kLossPart = 0, kExitLossPart = 1, kReportPart = 2;

}  // namespace tutti
