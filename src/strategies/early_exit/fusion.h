// Fusion: what several devices say of the same samples, as one. DDNN's max pooling (MP), average
// pooling (AP) and concatenation (CC), with their gradients. Pure arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "strategies/early_exit/views.h"

namespace tutti {

enum class Fuse { kMax, kMean, kConcat };
Fuse fuse_named(std::string_view name);  // "max", "mean" or "concat"

// Shape of what is fused of parts of this shape. Images that are concatenated lie beside each other
// as the views do, so that a convolution sees across their borders.
std::vector<int64_t> fused_shape(Fuse how, const Views& views, const std::vector<int64_t>& part);

class Fusion {
 public:
  // The values of an image lie with their channels last, as between the stages of a model.
  Fusion(Fuse how, const Views& views, const std::vector<int64_t>& part);

  size_t parts() const { return parts_; }
  size_t part_values() const { return part_values_; }  // of a sample, of one device
  size_t values() const { return values_; }            // of a sample, fused
  // parts[device] has the values of all samples. Keeps what backward() needs.
  void forward(const std::vector<std::vector<float>>& parts, std::vector<float>& fused);
  // From the gradient by what is fused to those by the parts. Of a maximum it belongs to the one
  // that had it, the first of equal ones; of a mean to all alike.
  void backward(std::span<const float> slope, std::vector<std::vector<float>>& slopes) const;

 private:
  Fuse how_;
  size_t parts_, part_values_, values_;
  std::vector<size_t> places_;     // concatenation: of part_values() for each part, in a sample
  std::vector<uint32_t> winners_;  // maximum: which part had it
};

}  // namespace tutti
