// Views define which part of every sample each device sees.
//
// They stand in for the cameras of DDNN, which see one object from several sides: an image is cut
// into a grid of windows, a vector of features into consecutive ranges. All views have the same
// size; they overlap where the sample cannot be cut evenly, and together they cover all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tutti {

class Views {
 public:
  // `sample` is the shape of samples: [channels, height, width] or [features].
  Views(const std::vector<int64_t>& sample, size_t count);

  size_t count() const { return rows_ * columns_; }
  size_t rows() const { return rows_; }  // of the grid: view i is in row i / columns
  size_t columns() const { return columns_; }
  const std::vector<int64_t>& shape() const { return shape_; }  // of a view
  size_t first_row(size_t view) const;
  size_t first_column(size_t view) const;
  // Returns the part of each sample that this view shows. Features lie channel by channel.
  std::vector<float> cut(size_t view, std::span<const float> samples) const;

 private:
  size_t view_height() const { return shape_.size() == 3 ? static_cast<size_t>(shape_[1]) : 1; }
  size_t view_width() const { return static_cast<size_t>(shape_.back()); }

  size_t channels_ = 1, height_ = 1, width_;  // of a sample; a vector is one row
  size_t rows_ = 1, columns_;
  std::vector<int64_t> shape_;
};

}  // namespace tutti
