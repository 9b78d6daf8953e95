// Group norm (Wu and He, ECCV 2018) over images in channels-last order.
//
// LibTorch's kernels want the channels first, which would mean two transpositions a layer. Batch
// norm is the same with all pixels of a batch for those of a sample, and each channel for a group.
#pragma once

#include <cstddef>
#include <vector>

namespace tutti {

constexpr double kNormEpsilon = 1e-5;  // as PyTorch: no division by zero where values are equal

struct GroupNormShape {
  size_t samples, pixels, channels;
  size_t groups;  // of channels that have a mean and a deviation in common; divides `channels`
};

// What the backward pass needs: mean and 1 / deviation of each sample and group.
struct GroupStatistics {
  std::vector<float> mean, inverse;
};

// y = (x - mean) / deviation * weight + bias, with a weight and a bias for each channel.
void group_norm(const GroupNormShape& shape, const float* x, const float* weight, const float* bias,
                float* y, GroupStatistics& statistics);

// The same by a given mean and 1 / deviation of each channel: `groups` is not looked at.
void norm_by(const GroupNormShape& shape, const float* x, const float* weight, const float* bias,
             const GroupStatistics& given, float* y);

// Overwrites x_slope, weight_slope and bias_slope.
void group_norm_backward(const GroupNormShape& shape, const float* x, const float* slope,
                         const float* weight, const GroupStatistics& statistics, float* x_slope,
                         float* weight_slope, float* bias_slope);

}  // namespace tutti
