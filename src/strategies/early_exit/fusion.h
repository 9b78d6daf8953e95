// Fuses what several devices say of the same samples into one. Implements DDNN's max pooling (MP),
// average pooling (AP) and concatenation (CC), with their gradients. Pure arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/schema.h"
#include "strategies/early_exit/views.h"

namespace tutti {

enum class Fuse { kMax, kMean, kConcat };
constexpr auto words(Fuse) { return WordList<3>{"max", "mean", "concat"}; }

// Returns the shape of fused parts of this shape. Concatenated images lie side by side as the views
// do, so that a convolution sees across their borders.
std::vector<int64_t> fused_shape(Fuse how, const Views& views, const std::vector<int64_t>& part);

class Fusion {
 public:
  // The values of an image have their channels last, as between the stages of a model.
  Fusion(Fuse how, const Views& views, const std::vector<int64_t>& part);

  size_t parts() const { return parts_; }
  size_t part_values() const { return part_values_; }  // of one device, per sample
  size_t values() const { return values_; }            // fused, per sample
  // parts[device] has the values of all samples. Keeps what backward() needs.
  void forward(const std::vector<std::vector<float>>& parts, std::vector<float>& fused);
  // Computes the gradients of the parts from that of the fused values. For a maximum the first part
  // that had it gets the gradient; for a mean all parts get an equal share.
  void backward(std::span<const float> slope, std::vector<std::vector<float>>& slopes) const;

 private:
  Fuse how_;
  size_t parts_, part_values_, values_;
  std::vector<size_t> places_;     // concatenation: where each value of each part goes
  std::vector<uint32_t> winners_;  // maximum: which part had it
};

}  // namespace tutti
