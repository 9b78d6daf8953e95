// Which versions of a record this program reads. One rule for every file that a version left behind
// and another one opens.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tutti {

struct SchemaRange {
  int64_t oldest = 1, newest = 1;
};

// Returns the "schema" of a record. Throws DataError unless this program reads it: the message
// begins with `where`, names both versions and ends with what to do, `remedy` if no other version
// of the program is at hand.
int64_t require_schema(const nlohmann::json& record, SchemaRange known, const std::string& where,
                       const std::string& remedy);

}  // namespace tutti
