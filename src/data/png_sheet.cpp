#include "data/png_sheet.h"

#include <fmt/format.h>
#include <png.h>

#include <memory>

#include "core/error.h"

namespace tutti {

// The size is compared before memory is taken: what is expected, not what the header promises.
std::vector<uint8_t> read_png_sheet(const std::string& path, uint32_t width, uint32_t height) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  const std::unique_ptr<png_image, decltype(&png_image_free)> owner(&image, png_image_free);
  if (png_image_begin_read_from_file(&image, path.c_str()) == 0)
    throw DataError(fmt::format("{}: cannot be read as a PNG image: {}", path, image.message));
  if (image.width != width || image.height != height)
    throw DataError(fmt::format("{}: has {} x {} pixels where {} x {} are expected", path,
                                image.width, image.height, width, height));
  image.format = PNG_FORMAT_RGB;
  std::vector<uint8_t> pixels(PNG_IMAGE_SIZE(image));
  if (png_image_finish_read(&image, nullptr, pixels.data(), 0, nullptr) == 0)
    throw DataError(fmt::format("{}: is damaged: {}", path, image.message));
  return pixels;
}

}  // namespace tutti
