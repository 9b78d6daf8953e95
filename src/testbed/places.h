// Who comes before whom, and who cannot be told apart.
//
// All times share errors: that of the model's cost and that of simulated networks make all of them
// too long or too short together. What decides the order is the difference of two times over the
// same seeds. Choices whose difference lies within its own error have places that overlap; others
// may have places in common, too, where a third one is tied with both.
#pragma once

#include <cstddef>
#include <vector>

#include "testbed/choice.h"

namespace tutti {

struct Difference {
  double log_ratio = 0;  // of the first time to the second
  double error = 0;      // of that, at 90 %
  bool is_decided() const { return log_ratio > error || log_ratio < -error; }
};
Difference difference(const Choice& a, const Choice& b);

// From 1. Equal where a choice can be told apart from all others.
struct Place {
  size_t first = 1, last = 1;
};
// Of the judged choices, in the order of rank(). The first place that one may have is behind all
// that are surely before it, the last one before all that are surely behind it. Who reaches the
// target with every seed is surely before who misses it with some.
std::vector<Place> places(const std::vector<Choice>& ranked);

// Puts one worker alone first, where it cannot be told apart from any before it and takes at most
// 1 % longer: of what is as good, the simplest is named. The choices are in the order of rank().
void prefer_solo(std::vector<Choice>& ranked);

}  // namespace tutti
