// A plan as JSON: what `tutti check --json` prints, run folders keep as plan.json and guests are
// sent.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "strategies/plan.h"

namespace tutti {

nlohmann::json to_json(const Taxonomy& taxonomy);
nlohmann::json to_json(const Plan& plan);

}  // namespace tutti
