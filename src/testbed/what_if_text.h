// What to change, for people.
#pragma once

#include <string>

#include "testbed/advice.h"

namespace tutti {

// A line or two for each question that was asked; "" when none was.
std::string what_if_text(const Advice& advice);

}  // namespace tutti
