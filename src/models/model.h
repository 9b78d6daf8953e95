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

  // Empty, as it is at first: all parameters are there when gradient() is called.
  void before_reading(Needed needed) { needed_ = std::move(needed); }

 protected:
  Needed needed_;
};

// The memory of a model, provided by the caller so that it can live in a shared window. Each span
// holds parameter_count floats and outlives the model. Without gradients the model only measures.
// Nothing at all for a sparse model that is to hold rows of its own (sparse_model.h).
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
// Writes those that lie in this range of the parameters.
void initialise(const Architecture& architecture, uint64_t seed, Range range,
                std::span<float> values);

// Makes models over memory whose parameters are already initialised.
struct ModelMaker {
  std::unique_ptr<Model> (*whole)(const Architecture&, const ModelMemory&, const ModelOptions&);
  // A stage (stage.h) or a shard of one (shard.h), whose group must outlive it. Nullptr for sparse
  // models, which have one layer.
  std::unique_ptr<StageModel> (*part)(const Architecture& part, const ModelMemory&,
                                      const ModelOptions&, ShardGroup* group);
};

// Models for cost-only runs: they know their costs, compute nothing and never touch their memory.
extern const ModelMaker kCostModels;

}  // namespace tutti

// What libtutti_torch.so exports.
extern "C" __attribute__((visibility("default"))) const tutti::ModelMaker tutti_torch_models;
