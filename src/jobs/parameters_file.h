// Parameters on disk: safetensors, in PyTorch's names and layout, so that other tools read them.
#pragma once

#include <span>
#include <string>

#include "models/architecture.h"

namespace tutti {

// Writes beside the path and renames, so that a full disk never leaves half a file behind.
void save_parameters(const std::string& path, const Architecture& architecture,
                     std::span<const float> parameters);

// Throws DataError unless the file holds exactly these parameters. Sizes are checked before memory
// is taken.
void load_parameters(const std::string& path, const Architecture& architecture,
                     std::span<float> parameters);

// SHA-256 over all parameters in PyTorch's layout: the same whatever their order in memory.
std::string parameters_sha256(const Architecture& architecture, std::span<const float> parameters);

}  // namespace tutti
