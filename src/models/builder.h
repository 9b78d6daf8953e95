// Assembles an Architecture layer by layer, keeping track of the shape that a sample has by then.
//
// Parameters start as those of the PyTorch module that each layer names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/architecture.h"

namespace tutti {

int64_t elements(const std::vector<int64_t>& shape);

class Builder {
 public:
  Builder(std::string kind, std::vector<int64_t> sample_shape);

  // Square kernel, stride 1, no padding, bias (Conv2d). Throws ConfigError when the image is too
  // small.
  Builder& convolution(int64_t channels, int64_t kernel);
  // 3 x 3, padded to keep the size (or half of it, with stride 2), without bias.
  Builder& padded_convolution(const std::string& name, int64_t channels, int64_t stride);
  // Stride = kernel; a rest that does not fill a window is dropped, as PyTorch does.
  Builder& max_pool(int64_t kernel);
  Builder& average_pool();           // over all pixels
  Builder& flatten();                // nothing to do for samples that are flat already
  Builder& affine(int64_t outputs);  // Linear, called fc1, fc2, ...
  Builder& affine(const std::string& name, int64_t outputs);  // Linear on the last dimension
  Builder& relu();
  Builder& gelu();
  Builder& dropout(double probability);  // no layer when the probability is 0
  Builder& group_norm(const std::string& name, int64_t groups);
  // BatchNorm2d, whose statistics are those of `ghost_batch` samples.
  Builder& batch_norm(const std::string& name, int64_t ghost_batch);
  Builder& layer_norm(const std::string& name);
  Builder& embedding(const std::string& name, int64_t codes, int64_t width);
  Builder& positions(const std::string& name);  // Embedding of the position, added
  // MultiheadAttention without its dropout: projections in and out with the attention between.
  Builder& causal_attention(const std::string& name, int64_t heads);
  Builder& skip(const std::string& name);
  Builder& add(const std::string& name);  // what the skip kept; ends the block

  // Returns the layers so far, as a part of a model.
  Architecture part();
  // Ends with the loss: cross-entropy over `classes` scores, or half the squared error when 0.
  // The last layer is called `name`, or by its number when there is none.
  Architecture finish(int64_t classes, const std::string& name = "");

 private:
  // How the values of a parameter start.
  struct Start {
    double bound = 0, mean = 0, deviation = 0;
    double running_rate = 0;
  };
  static Start uniform_over(int64_t fan_in);
  Layer& append(LayerKind kind, std::string name, std::vector<int64_t> output, double flops);
  void add_parameter(const std::string& name, std::vector<int64_t> shape, Start start,
                     bool channels_last = false);
  void append_affine(const std::string& name, int64_t outputs);

  Architecture result_;
  std::vector<int64_t> shape_;  // of one sample after the layers so far
  std::vector<size_t> open_;    // skips whose add is still to come
  int convolutions_ = 0;
  int affines_ = 0;
  int dropouts_ = 0;
};

}  // namespace tutti
