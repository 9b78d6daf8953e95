// What a result was obtained with: versions of the libraries, and the machine.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace tutti {

nlohmann::json library_versions();     // of what this program was built with
nlohmann::json machine_description();  // processor, hardware threads, memory, kernel

}  // namespace tutti
