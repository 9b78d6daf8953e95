// What a model consists of, without the arithmetic: layers, parameters, costs and places to cut.
//
// Computed from the model's settings and the data's shape alone and free of LibTorch, so that
// `tutti check`, the planner and cost-only simulations need no model in memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/range.h"

namespace tutti {

// Which values of a whole parameter a shard has: parts of one dimension, one after the other.
struct Slice {
  std::vector<int64_t> whole;  // shape of the whole parameter, as PyTorch's
  size_t dimension = 0;
  std::vector<Range> parts;  // none: all of it
};

// A named parameter: a range of the flat buffer. Convolution weights are stored as OHWI
// (channels last) and exported as OIHW, PyTorch's layout; `shape` is always PyTorch's.
struct Parameter {
  std::string name;  // PyTorch style: "conv1.weight"
  std::vector<int64_t> shape;
  Range range;
  bool channels_last = false;
  // Initial values are `init_mean`, plus a uniform number in [-bound, bound], plus a normal one.
  double init_bound = 0;
  double init_mean = 0;
  double init_deviation = 0;
  // > 0: a running statistic, which is not trained. In the place of its gradient a model tells how
  // far it is off, so replicas merge it as they merge gradients or parameters: by the mean over
  // samples. At each step it moves by this share of that (optimizers/layout.h).
  double running_rate = 0;
  Slice slice = {};  // of a shard (shard.h)
};

// A sample is an image [channels, height, width], a vector [features] or, for sequences, first
// codes [positions] and then a vector for each position [positions, width].
enum class LayerKind {
  kConvolution,
  kAffine,  // on the last dimension: of sequences, the same at every position
  kRelu,
  kGelu,
  kMaxPool,
  kAveragePool,  // over all pixels of a channel
  kDropout,
  kFlatten,
  kGroupNorm,
  kBatchNorm,  // over a few samples in training, by running statistics elsewhere
  kLayerNorm,  // over the last dimension
  kSkip,       // keeps its input for the add that belongs to it; the layers between are a block
  kAdd,        // adds what the skip kept, with every other pixel and further channels of zero where
               // the block made images smaller and deeper
  kEmbedding,  // codes to vectors
  kPosition,   // adds a vector for each position
  kAttention,  // causal: takes query, key and value of each position, looks at no later one
  kRows,       // a row of parameters for each feature, of which a sample touches few
  kSpread,     // of a shard: the same forward, the sum of the shards' gradients backward
  kCombine,    // of a shard: the sum over shards forward, plus a bias; the same backward
};

struct Layer {
  LayerKind kind;
  std::string name;
  std::vector<int64_t> input, output;  // shapes of one sample
  std::vector<size_t> parameters;      // positions in Architecture::parameters
  int64_t kernel = 0;                  // convolution and pooling
  int64_t stride = 1;                  // convolution
  int64_t padding = 0;                 // convolution: zeros on each side
  int64_t groups = 0;                  // group norm; heads of an attention
  int64_t ghost_batch = 0;             // batch norm: samples that are normalised together
  size_t skip = 0;                     // add: position of the skip in Architecture::layers
  double probability = 0;              // dropout
  double flops = 0;                    // forward, one sample; backward costs twice as much
  size_t number = 0;                   // position in the layers of the whole model
  // Of a shard, where a layer must know which part of the whole one it is: the codes of an
  // embedding, the outputs of a dropout, out of `whole` of them. Empty: all.
  Range part = {};
  size_t whole = 0;
};

// Where a stage begins in the model that it is a part of. Names what random numbers are keyed by,
// so that a stage starts and drops out as the same layers of the whole model do.
struct StagePlace {
  size_t layer = 0;      // layers below it
  size_t parameter = 0;  // parameters below it
  size_t value = 0;      // values of the flat buffer below it
  bool last = true;      // its output are the scores
};

// Which shard of its layers a model is (shard.h).
struct ShardPlace {
  size_t index = 0, count = 1;
  Range scores = {};  // where they are split, those that this shard has
  bool splits_scores() const { return !scores.empty(); }
};

struct Architecture {
  std::string kind;
  StagePlace place;            // of a whole model: the beginning
  ShardPlace shard;            // of a whole model: the only one
  std::vector<int64_t> input;  // shape of one sample
  int64_t outputs = 0;         // scores per prediction: classes, or 1
  int64_t positions = 1;       // predictions per sample: sequences have one at each position
  bool classification = true;  // cross-entropy over scores, or half the squared error
  double l2 = 0;
  double l1 = 0;
  size_t row_width = 0;  // > 0: sparse, its one parameter is a matrix of such rows (sparse_model.h)
  double values_per_sample = 0;  // sparse: rows that a sample touches, on average
  std::vector<Layer> layers;
  // The first layers of branches, which take a part of a sample each (branches.h). Empty when the
  // layers are a chain.
  std::vector<size_t> branches = {};
  std::vector<Parameter> parameters;  // in order of the flat buffer, which is the forward order
  size_t parameter_count = 0;

  double forward_flops() const;     // one sample
  double training_flops() const;    // one sample, forward and backward
  double activation_bytes() const;  // one sample, kept between forward and backward
  // Layer indices before which the model can be cut into stages, so that each stage holds
  // parameters and what passes a cut is one tensor: never between a skip and its add.
  std::vector<size_t> cuts() const;
  // FLOPs, for one sample, of the backward pass that makes the gradients in `range` ready; the
  // ranges reported by Model::gradient partition the backward pass.
  double backward_flops(Range range) const;
  // Returns the number of layers in that part of the backward pass. All ranges together have every
  // layer.
  double backward_layers(Range range) const;
  size_t rows() const { return row_width ? parameter_count / row_width : 0; }
  // Ranges of the flat buffer that are trained, and those of running statistics; neighbours as one.
  std::vector<Range> trained() const;
  std::vector<Range> statistics() const;

 private:
  std::vector<Range> ranges(bool running) const;
  template <typename Cost>
  double backward_share(Range range, const Cost& cost) const;
};

// The ranges in which Model::gradient reports gradients, in that order: one for each layer with
// parameters, last layers first.
std::vector<Range> ready_ranges(const Architecture& architecture);

}  // namespace tutti
