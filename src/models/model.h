// Model: parameters and gradients as flat spans of float, and the arithmetic on a batch.
//
// Free of LibTorch: the implementation lives in models/torch, a library that is loaded only by
// commands that compute. A model knows nothing of networks.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "data/dataset.h"
#include "models/architecture.h"

namespace tutti {

// Sums over samples, so that shares of an evaluation add up. Where a sample is a sequence, its loss
// is the mean over its positions, and it counts as right in the share of them that is.
struct Evaluation {
  double loss = 0;     // sum of the losses
  double correct = 0;  // classification: samples predicted right
  size_t count = 0;
};

class ShardGroup;
class StageModel;

class Model {
 public:
  // Called with each range whose gradients are final, last layers first. Must not block.
  using Ready = std::function<void(Range)>;
  // Called before the forward pass of gradient() reads each range of parameters, first layers
  // first. It may wait for them to arrive.
  using Needed = std::function<void(Range)>;

  virtual ~Model() = default;
  virtual const Architecture& architecture() const = 0;
  virtual std::span<float> parameters() = 0;
  virtual std::span<float> gradients() = 0;

  // gradients = scale * (sum over the batch of the gradient of the loss), of running statistics
  // scale * (sum over the batch of how far they are off); returns the sum of the losses.
  // `parameters` must not change meanwhile: that is not detected.
  virtual double gradient(const Batch& batch, float scale, const Ready& ready) = 0;
  // Measures the fit to the data: no dropout, and no penalty in the loss.
  virtual Evaluation evaluate(const Batch& batch) = 0;
  // scores: batch size x positions x outputs.
  virtual void predict(const Batch& batch, std::span<float> scores) = 0;
  // These layers alone, over their part of this model's memory (stage.h). The model's `cuts` say
  // where they may begin and end. Nullptr for sparse models, which have one layer.
  virtual std::unique_ptr<StageModel> stage(Range layers) = 0;
  // What shard `index` of `count` has of these layers (shard.h), in memory of its own that starts
  // with its part of the initial parameters. The group must outlive it. Nullptr for sparse models.
  virtual std::unique_ptr<StageModel> shard(Range layers, size_t index, size_t count,
                                            ShardGroup& group) = 0;

  // Empty, as it is at first: all parameters are there when gradient() is called.
  void before_reading(Needed needed) { needed_ = std::move(needed); }

 protected:
  Needed needed_;
};

// The memory of a model, provided by the caller so that it can live in a shared window. Each span
// holds parameter_count floats and outlives the model. Nothing at all for a sparse model that is to
// hold rows of its own (sparse_model.h).
struct ModelMemory {
  std::span<float> parameters;
  std::span<float> gradients;
};

struct ModelOptions {
  uint64_t seed = 1;
  int threads = 1;
};

// Writes the initial parameters: a function of architecture and seed alone.
void initialise(const Architecture& architecture, uint64_t seed, std::span<float> parameters);

// Makes a model over memory whose parameters are already initialised.
using MakeModel = std::unique_ptr<Model> (*)(const Architecture&, const ModelMemory&,
                                             const ModelOptions&);

// A model for cost-only runs: knows its costs, computes nothing, never touches its memory.
std::unique_ptr<Model> make_cost_model(const Architecture&, const ModelMemory&,
                                       const ModelOptions&);

}  // namespace tutti

// What libtutti_torch.so exports: a MakeModel.
extern "C" __attribute__((visibility("default"))) const tutti::MakeModel tutti_make_torch_model;
