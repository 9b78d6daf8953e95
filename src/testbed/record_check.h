// Checks run.json before anybody relies on it. Readers of a record may then assume that every value
// in it has the right type.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tutti {

// Throws DataError that names the file, the value at fault and what to do.
nlohmann::json read_run_record(const std::string& path);

}  // namespace tutti
