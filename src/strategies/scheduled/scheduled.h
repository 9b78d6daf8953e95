// Coordinate descent over features that workers share, by a scheduler's choice.
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace tutti {

std::unique_ptr<Strategy> make_scheduled();
std::vector<Variant> scheduled_variants();  // one for each schedule

}  // namespace tutti
