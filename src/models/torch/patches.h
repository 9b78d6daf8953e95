// The patches of an image under a sliding square kernel, as rows of a matrix, and back.
//
// With the patches as a matrix a convolution is a matrix product. With channels last a patch
// consists of `kernel` contiguous runs, which makes gathering cheap.
#pragma once

#include <cstddef>

namespace tutti {

struct PatchShape {
  size_t height, width, channels;  // of an image
  size_t kernel;

  size_t rows() const { return (height - kernel + 1) * (width - kernel + 1); }
  size_t columns() const { return kernel * kernel * channels; }
  size_t image() const { return height * width * channels; }
};

// patches[sample, row, column, kernel height, kernel width, channel] of images in channels-last
// order.
void gather_patches(const PatchShape& shape, size_t samples, const float* images, float* patches);

// Overwrites each pixel with the sum of the patch values that stand for it.
void scatter_patches(const PatchShape& shape, size_t samples, const float* patches, float* images);

}  // namespace tutti
