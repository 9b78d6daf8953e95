// One worker alone: the baseline that every other strategy is measured against.
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace tutti {

std::unique_ptr<Strategy> make_solo();
std::vector<Variant> solo_variants();

}  // namespace tutti
