// Says whether one quality is better than another, and whether it reaches a target, for training
// and for records alike. Accuracy should be high, a squared error low.
#pragma once

namespace tutti {

// False when either is not a number.
inline bool is_better(double quality, double than, bool higher_is_better) {
  return higher_is_better ? quality > than : quality < than;
}

// A target of 0 is none, which nothing reaches. False when the quality is not a number.
inline bool reaches(double quality, double target, bool higher_is_better) {
  return target > 0 && (higher_is_better ? quality >= target : quality <= target);
}

}  // namespace tutti
