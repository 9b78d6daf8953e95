// The question that a comparison answers, as a person would ask it: the headline of its page and
// its table.
#pragma once

#include <string>

#include "testbed/comparison.h"

namespace tutti {

// "Which architecture trains LeNet on Fashion-MNIST fastest on 8 nodes at 1 Gbit/s?", as far as the
// comparison says what and where.
std::string question_of(const Comparison& comparison);

}  // namespace tutti
