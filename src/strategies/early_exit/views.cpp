#include "strategies/early_exit/views.h"

#include <algorithm>

#include "core/error.h"

namespace tutti {
namespace {

// Returns where a window begins. Windows are spread evenly, from the beginning to the end.
size_t begin_of(size_t whole, size_t window, size_t windows, size_t index) {
  return windows > 1 ? index * (whole - window) / (windows - 1) : 0;
}

}  // namespace

// The grid is as square as the number of views allows: 2 x 2 for 4, 2 x 3 for 6, 1 x 3 for 3.
Views::Views(const std::vector<int64_t>& sample, size_t count)
    : width_(static_cast<size_t>(sample.back())), columns_(count), shape_(sample) {
  TUTTI_CHECK(count > 0 && (sample.size() == 1 || sample.size() == 3));
  if (sample.size() == 3) {
    channels_ = static_cast<size_t>(sample[0]);
    height_ = static_cast<size_t>(sample[1]);
    for (size_t rows = 1; rows * rows <= count; ++rows)
      if (count % rows == 0) rows_ = rows;
    columns_ = count / rows_;
    shape_[1] = static_cast<int64_t>((height_ + rows_ - 1) / rows_);
  }
  shape_.back() = static_cast<int64_t>((width_ + columns_ - 1) / columns_);
}

size_t Views::first_row(size_t view) const {
  return begin_of(height_, view_height(), rows_, view / columns_);
}

size_t Views::first_column(size_t view) const {
  return begin_of(width_, view_width(), columns_, view % columns_);
}

std::vector<float> Views::cut(size_t view, std::span<const float> samples) const {
  const size_t planes = samples.size() / (height_ * width_);  // channels of all samples
  const size_t rows = view_height(), columns = view_width();
  std::vector<float> result(planes * rows * columns);
  float* out = result.data();
  for (size_t plane = 0; plane < planes; ++plane)
    for (size_t y = 0; y < rows; ++y, out += columns)
      std::copy_n(
          samples.data() + (plane * height_ + first_row(view) + y) * width_ + first_column(view),
          columns, out);
  return result;
}

}  // namespace tutti
