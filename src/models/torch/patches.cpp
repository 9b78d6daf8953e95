#include "models/torch/patches.h"

#include <algorithm>

#include "core/vectorised.h"

namespace tutti {
namespace {

// Calls visit(offset in the images, offset in the patches) for each contiguous run.
template <class Visit>
TUTTI_INLINE void for_each_run(const PatchShape& s, size_t samples, const Visit& visit) {
  const size_t run = s.kernel * s.channels;
  size_t at = 0;
  for (size_t n = 0; n < samples; ++n)
    for (size_t row = 0; row + s.kernel <= s.height; ++row)
      for (size_t column = 0; column + s.kernel <= s.width; ++column)
        for (size_t k = 0; k < s.kernel; ++k) {
          visit(((n * s.height + row + k) * s.width + column) * s.channels, at);
          at += run;
        }
}

}  // namespace

void gather_patches(const PatchShape& shape, size_t samples, const float* images, float* patches) {
  const size_t run = shape.kernel * shape.channels;
  for_each_run(shape, samples, [=](size_t image, size_t patch) {
    std::copy_n(images + image, run, patches + patch);
  });
}

TUTTI_VECTORISED
void scatter_patches(const PatchShape& shape, size_t samples, const float* patches, float* images) {
  std::fill_n(images, samples * shape.image(), 0.0F);
  const size_t run = shape.kernel * shape.channels;
  for_each_run(
      shape, samples, [=](size_t image, size_t patch) __attribute__((always_inline)) {
        const float* __restrict from = patches + patch;
        float* __restrict to = images + image;
        for (size_t i = 0; i < run; ++i) to[i] += from[i];
      });
}

}  // namespace tutti
