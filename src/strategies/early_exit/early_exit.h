// A network over device, edge and cloud in which samples leave as soon as an exit is certain.
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace tutti {

std::unique_ptr<Strategy> make_early_exit();
std::vector<Variant> early_exit_variants();

}  // namespace tutti
