// What only sequences have: vectors for codes and positions, and attention.
#pragma once

#include <vector>

#include "models/torch/operation.h"
#include "models/torch/weights.h"

namespace tutti {

// [samples, positions] codes to [samples, positions, width]. Throws DataError for a code that the
// table does not have. A shard has some of the rows, and zeros for the other codes.
class Embedding : public Operation {
 public:
  Embedding(const Layer& layer, Weights weights);
  at::Tensor forward(const at::Tensor& x, const Pass& pass) override;
  at::Tensor backward(const at::Tensor& slope, bool input_needed) override;

 private:
  bool has(size_t code) const { return code >= rows_.begin && code < rows_.end; }
  float* row_of(const at::Tensor& table, size_t code) const;

  Weights w_;
  Range rows_;    // of the whole table
  size_t whole_;  // its rows
  std::vector<size_t> codes_;
  at::Tensor y_;
};

// Adds the same vectors to each sample, in place.
class Position : public Operation {
 public:
  explicit Position(Weights weights);
  at::Tensor forward(const at::Tensor& x, const Pass& pass) override;
  at::Tensor backward(const at::Tensor& slope, bool input_needed) override;

 private:
  Weights w_;
};

// softmax(q k^T / sqrt(width of a head)) v for each head, later positions masked. Takes
// [samples, positions, 3 x width] with q, k and v side by side, as MultiheadAttention projects.
class Attention : public Operation {
 public:
  explicit Attention(const Layer& layer);
  at::Tensor forward(const at::Tensor& x, const Pass& pass) override;
  at::Tensor backward(const at::Tensor& slope, bool input_needed) override;

 private:
  int64_t heads_, positions_, width_;  // width of a head
  at::Tensor qkv_;                     // 3, samples, heads, positions, width; q scaled
  at::Tensor scores_, shares_;         // samples x heads, positions, positions
  at::Tensor mixed_, y_;
  at::Tensor qkv_slope_, shares_slope_, scores_slope_, mixed_slope_, x_slope_;
};

}  // namespace tutti
