// What a model consists of, without the arithmetic: layers, parameters, costs and places to cut.
//
// Computed from the model's settings and the data's shape alone and free of LibTorch, so that
// `tutti check`, the planner and cost-only simulations need no model in memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/range.h"
#include "core/schema.h"

namespace tutti {

// [task] model = "lenet", or a table with a kind and these settings.
struct ModelConfig {
  std::string kind = "lenet";
  std::vector<int64_t> channels = {20, 50};  // lenet: of the two convolutions
  std::vector<int64_t> hidden = {};  // lenet and mlp: affine layers; empty: [500], [128] of mlp
  double dropout = -1;               // after each hidden affine layer; -1: 0.5, 0 of mlp
  double l2 = 0;                     // linear and logistic: l2/2 * |weights|^2 in each loss
};

// The keys that the kind uses, `kind` excepted. Shows the defaults of the kind where none are set.
void visit(Visitor& visitor, ModelConfig& config);

struct ModelEntry {
  std::string_view name;
  std::string_view summary;
};
const std::vector<ModelEntry>& model_catalog();

// A named parameter: a range of the flat buffer. Convolution weights are stored as OHWI
// (channels last) and exported as OIHW, PyTorch's layout; `shape` is always PyTorch's.
struct Parameter {
  std::string name;            // PyTorch style: "conv1.weight"
  std::vector<int64_t> shape;
  Range range;
  bool channels_last = false;
  double init_bound = 0;       // initial values are uniform in [-bound, bound]
};

enum class LayerKind { kConvolution, kAffine, kRelu, kMaxPool, kDropout, kFlatten };

struct Layer {
  LayerKind kind;
  std::string name;
  std::vector<int64_t> input, output;  // shapes of one sample
  std::vector<size_t> parameters;      // positions in Architecture::parameters
  int64_t kernel = 0;                  // convolution and pooling
  double probability = 0;              // dropout
  double flops = 0;                    // forward, one sample; backward costs twice as much
};

// A non-trained buffer (such as running statistics) and how replicas merge it.
struct ModelBuffer {
  std::string name;
  size_t size = 0;
  std::string merge;  // mean | sum | keep_first
};

struct Architecture {
  std::string kind;
  std::vector<int64_t> input;   // shape of one sample
  int64_t outputs = 0;          // scores per sample: classes, or 1
  bool classification = true;   // cross-entropy over scores, or half the squared error
  double l2 = 0;
  std::vector<Layer> layers;
  std::vector<Parameter> parameters;  // in order of the flat buffer, which is the forward order
  std::vector<ModelBuffer> buffers;
  size_t parameter_count = 0;

  double forward_flops() const;        // one sample
  double training_flops() const;       // one sample, forward and backward
  double activation_bytes() const;     // one sample, kept between forward and backward
  // Layer indices before which the model can be cut into stages.
  std::vector<size_t> cuts() const;
  // FLOPs, for one sample, of the backward pass that makes the gradients in `range` ready; the
  // ranges reported by Model::gradient partition the backward pass.
  double backward_flops(Range range) const;
};

// The ranges in which Model::gradient reports gradients, in that order: one for each layer with
// parameters, last layers first.
std::vector<Range> ready_ranges(const Architecture& architecture);

// Throws ConfigError when the model cannot take such samples.
Architecture make_architecture(const ModelConfig& config, const std::vector<int64_t>& sample_shape,
                               int64_t classes);

}  // namespace tutti
