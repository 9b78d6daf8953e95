// Parameter server: workers compute, servers hold the parameters, a shard each.
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace tutti {

std::unique_ptr<Strategy> make_parameter_server();
std::vector<Variant> parameter_server_variants();  // one per consistency model

}  // namespace tutti
