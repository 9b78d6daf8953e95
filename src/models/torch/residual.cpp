#include "models/torch/residual.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/slice.h>

#include <utility>

namespace tutti {
namespace {

// The pixels of `image` that are left when it shrinks to the size of `small`.
at::Tensor thinned(const at::Tensor& image, const at::Tensor& small) {
  at::Tensor result = image;
  for (int64_t dimension = 2; dimension < image.dim(); ++dimension) {
    const int64_t step = (image.size(dimension) - 1) / small.size(dimension) + 1;
    if (step > 1) result = result.slice(dimension, 0, image.size(dimension), step);
  }
  return result;
}

at::Tensor first_channels(const at::Tensor& image, const at::Tensor& like) {
  return image.size(1) == like.size(1) ? image : image.slice(1, 0, like.size(1));
}

}  // namespace

Skip::Skip(std::shared_ptr<Bypass> bypass) : bypass_(std::move(bypass)) {}

at::Tensor Skip::forward(const at::Tensor& x, const Pass&) {
  bypass_->kept = x;
  return x;
}

at::Tensor Skip::backward(const at::Tensor& slope, bool input_needed) {
  if (!input_needed) return {};
  thinned(slope, bypass_->slope).add_(first_channels(bypass_->slope, slope));
  return slope;
}

Add::Add(std::shared_ptr<Bypass> bypass) : bypass_(std::move(bypass)) {}

at::Tensor Add::forward(const at::Tensor& x, const Pass&) {
  const at::Tensor& kept = bypass_->kept;
  first_channels(x, kept).add_(thinned(kept, x));
  return x;
}

// A copy: the layers of the block may overwrite what they are given.
at::Tensor Add::backward(const at::Tensor& slope, bool) {
  at::Tensor& own = bypass_->slope;
  if (!own.defined() || own.sizes() != slope.sizes() || own.strides() != slope.strides())
    own = at::empty_like(slope);
  own.copy_(slope);
  return slope;
}

}  // namespace tutti
