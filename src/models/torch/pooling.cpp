#include "models/torch/pooling.h"

#include <algorithm>

#include "core/vectorised.h"

namespace tutti {
namespace {

// `kernel` is a constant where this is called from, so that the loops over a window vanish and
// those over the channels become vector instructions.
TUTTI_INLINE void pool_window(const float* __restrict x, size_t row_stride, size_t channels,
                              size_t kernel, float* __restrict y, int32_t* __restrict winner) {
  for (size_t c = 0; c < channels; ++c) {
    float best = 0;
    int32_t position = -1;
    for (size_t k = 0; k < kernel * kernel; ++k) {
      const float value = x[k / kernel * row_stride + k % kernel * channels + c];
      const bool better = (value > best) | (value != value);
      best = better ? value : best;
      position = better ? static_cast<int32_t>(k) : position;
    }
    y[c] = best;
    winner[c] = position;
  }
}

TUTTI_INLINE void spread_window(const float* __restrict slope, const int32_t* __restrict winner,
                                size_t row_stride, size_t channels, size_t kernel,
                                float* __restrict x_slope) {
  for (size_t k = 0; k < kernel * kernel; ++k) {
    float* to = x_slope + k / kernel * row_stride + k % kernel * channels;
    for (size_t c = 0; c < channels; ++c)
      to[c] = winner[c] == static_cast<int32_t>(k) ? slope[c] : 0.0F;
  }
}

// Calls visit(offset in the input, offset in the output) for each window.
template <class Visit>
TUTTI_INLINE void for_each_window(const PoolShape& s, size_t kernel, const Visit& visit) {
  const size_t rows = s.height / kernel, columns = s.width / kernel;
  for (size_t n = 0; n < s.samples; ++n)
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < columns; ++c)
        visit(((n * s.height + r * kernel) * s.width + c * kernel) * s.channels,
              ((n * rows + r) * columns + c) * s.channels);
}

}  // namespace

TUTTI_VECTORISED
void relu_max_pool(const PoolShape& shape, const float* x, float* y, int32_t* winner) {
  const size_t row_stride = shape.width * shape.channels, channels = shape.channels;
  const auto run = [=](const PoolShape& s, size_t kernel) __attribute__((always_inline)) {
    for_each_window(
        s, kernel, [=](size_t in, size_t out) __attribute__((always_inline)) {
          pool_window(x + in, row_stride, channels, kernel, y + out, winner + out);
        });
  };
  shape.kernel == 2 ? run(shape, 2) : run(shape, shape.kernel);
}

TUTTI_VECTORISED
void relu_max_pool_backward(const PoolShape& shape, const float* slope, const int32_t* winner,
                            float* x_slope) {
  const size_t row_stride = shape.width * shape.channels, channels = shape.channels;
  if (shape.height % shape.kernel != 0 || shape.width % shape.kernel != 0)
    std::fill_n(x_slope, shape.samples * shape.height * row_stride, 0.0F);  // no window gets there
  const auto run = [=](const PoolShape& s, size_t kernel) __attribute__((always_inline)) {
    for_each_window(
        s, kernel, [=](size_t in, size_t out) __attribute__((always_inline)) {
          spread_window(slope + out, winner + out, row_stride, channels, kernel, x_slope + in);
        });
  };
  shape.kernel == 2 ? run(shape, 2) : run(shape, shape.kernel);
}

}  // namespace tutti
