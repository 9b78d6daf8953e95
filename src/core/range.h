// A half-open range of positions in a flat buffer.
#pragma once

#include <cstddef>

namespace tutti {

struct Range {
  size_t begin = 0;
  size_t end = 0;
  size_t size() const { return end - begin; }
  bool empty() const { return begin == end; }
  friend bool operator==(const Range&, const Range&) = default;
};

// Part `index` of `parts` nearly equal parts of [0, total): sizes differ by at most one.
constexpr Range part_of(size_t total, size_t parts, size_t index) {
  return {total / parts * index + (index < total % parts ? index : total % parts),
          total / parts * (index + 1) + (index + 1 < total % parts ? index + 1 : total % parts)};
}

// Which of these parts a position below `total` is in.
constexpr size_t part_with(size_t total, size_t parts, size_t position) {
  const size_t larger = total % parts * (total / parts + 1);  // together
  return position < larger ? position / (total / parts + 1)
                           : total % parts + (position - larger) / (total / parts);
}

}  // namespace tutti
