// A PNG file as rows of red, green and blue bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tutti {

// Throws DataError naming the file unless it is an intact image of exactly this size.
std::vector<uint8_t> read_png_sheet(const std::string& path, uint32_t width, uint32_t height);

}  // namespace tutti
