// run.json, checked before anybody relies on it: whoever reads a record may take for granted that
// what is there is of the right type.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tutti {

// Throws DataError that names the file, the value at fault and what to do.
nlohmann::json read_run_record(const std::string& path);

}  // namespace tutti
