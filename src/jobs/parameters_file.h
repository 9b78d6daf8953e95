// Parameters on disk: safetensors, in PyTorch's names and layout, so that other tools read them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/architecture.h"
#include "strategies/strategy.h"

namespace tutti {

// Writes beside the path and renames, so that a full disk never leaves half a file behind.
void save_parameters(const std::string& path, const Architecture& architecture,
                     std::span<const float> parameters);

// Throws DataError unless the file holds exactly these parameters. Sizes are checked before memory
// is taken.
void load_parameters(const std::string& path, const Architecture& architecture,
                     std::span<float> parameters);

// Saves and loads what a strategy keeps beside the parameters. Throws DataError when the file is
// damaged.
void save_attachment(const std::string& path, const Attachment& attachment);
Attachment load_attachment(const std::string& path);

// Some rows of a sparse model, by ascending key.
struct Rows {
  std::vector<uint64_t> keys;
  std::vector<float> values;
};
// The same for these alone: a tensor of their keys beside that of their values.
void save_rows(const std::string& path, const Architecture& architecture,
               std::span<const uint64_t> keys, std::span<const float> values);
Rows load_rows(const std::string& path, const Architecture& architecture);
bool holds_some_rows(const std::string& path);  // which of the two the file is
std::string rows_sha256(std::span<const uint64_t> keys, std::span<const float> values);

// SHA-256 over all parameters in PyTorch's layout: the same whatever their order in memory.
std::string parameters_sha256(const Architecture& architecture, std::span<const float> parameters);

}  // namespace tutti
