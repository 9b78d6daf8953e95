// A plan as JSON: what `tutti check --json` prints, run folders keep as plan.json and guests are
// sent.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>

#include "strategies/plan.h"

namespace tutti {

// What architectures are compared by, under the names that every file and list has for it.
struct TaxonomyPart {
  const char* name;
  std::string_view (*word)(const Taxonomy& taxonomy);
};
std::span<const TaxonomyPart> taxonomy_parts();

nlohmann::json to_json(const Taxonomy& taxonomy);
nlohmann::json to_json(const Plan& plan);

}  // namespace tutti
