// A pipeline whose stages have their parameters on servers: a parameter server for models that no
// node holds as a whole.
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace tutti {

std::unique_ptr<Strategy> make_pipeline_servers();
std::vector<Variant> pipeline_servers_variants();

}  // namespace tutti
