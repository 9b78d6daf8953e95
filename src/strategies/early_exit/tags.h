// Parts of the tags of an early-exit network's messages.
#pragma once

#include <cstdint>

#include "fabric/tag.h"

namespace tutti {

// Of purpose kActivation.
enum class ScoresPart : uint64_t { kTraining, kJudging, kAnswering };
// Parts of purpose kEvaluation, beside those of evaluation.h.
enum class JudgingPart : uint64_t { kVerdicts = 2, kAnswers = 3, kSums = 4 };
// Of purpose kControl.
enum class TierPart : uint64_t { kLoss, kExitLoss, kReport };
// Of purpose kParameters.
enum class GatheringPart : uint64_t { kLayers, kExits };

// Activations and scores, on their way up.
inline Tag scores_tag(uint64_t step, ScoresPart part) {
  return {Purpose::kActivation, Tag::wrapped(step), part};
}
// The gradients by them, on their way down.
inline Tag slope_tag(uint64_t step) { return {Purpose::kSlope, Tag::wrapped(step)}; }
inline Tag judging_tag(uint64_t step, JudgingPart part) {
  return {Purpose::kEvaluation, Tag::wrapped(step), part};
}
inline Tag tier_tag(uint64_t step, TierPart part) {
  return {Purpose::kControl, Tag::wrapped(step), part};
}

}  // namespace tutti
