// Stages: consecutive layers of a model that are computed on a node of their own.
//
// What passes from stage to stage is one tensor for each sample, in memory order: images lie with
// their channels last. Composed, the stages of a model compute what the model does, bit by bit:
// they run the same kernels in the same order, start from the same parameters and drop out the same
// values.
#pragma once

#include <optional>

#include "models/model.h"

namespace tutti {

// The layers of `whole` in this range as an architecture of their own, with parameters and costs.
Architecture stage_of(const Architecture& whole, Range layers);

// The ranges of layers between cuts, in order: one more than there are cuts.
std::vector<Range> stages_between(const Architecture& whole, const std::vector<size_t>& cuts);

// The places to cut at, for messages: "before layer 3 (conv2), 7 (fc1)".
std::string cuts_in_words(const Architecture& whole, const std::vector<size_t>& cuts);
// The stages between places that the setting `key` asks for. Throws ConfigError where one is not
// among the `allowed` cuts or out of order.
std::vector<Range> given_stages(const Architecture& whole, const std::vector<size_t>& allowed,
                                const std::vector<int64_t>& places, const char* key);

// Floats that pass a cut for each sample, into and out of a stage.
size_t input_values(const Architecture& stage);
size_t output_values(const Architecture& stage);

// Bytes for each sample that a backward pass fills and the next one in the same slot fills again:
// the gradients by what layers take in, where they are not written over those by what they give.
double slope_bytes(const Architecture& stage);

// Its part of the memory of the model that it is a stage of, or of another stage that contains it.
ModelMemory part_of_memory(const ModelMemory& memory, const Architecture& whole,
                           const Architecture& stage);

// Several batches can be under way at once, each in a slot of its own from 0 on. A slot keeps what
// the backward pass of its batch needs, until the next forward pass in it.
class StageModel {
 public:
  virtual ~StageModel() = default;
  virtual const Architecture& architecture() const = 0;  // of these layers alone
  virtual std::span<float> parameters() = 0;             // a part of the whole model's
  virtual std::span<float> gradients() = 0;

  // `input` is what the stage below made of the batch's samples; the first stage takes their
  // features instead. Batch and input must stay until the backward pass. Returns the output, which
  // stays until the next forward pass in this slot: of the last stage, the scores. For training
  // with the scale of the gradients to come, without it to measure.
  virtual std::span<const float> forward(size_t slot, const Batch& batch,
                                         std::span<const float> input,
                                         std::optional<float> scale) = 0;
  // Of the last stage, after a forward pass: the sum of the losses; the backward pass then starts
  // from scale * their gradient.
  virtual double loss(size_t slot, const Batch& batch, float scale) = 0;
  // The same for what is measured: no penalty in the loss.
  virtual Evaluation evaluate(size_t slot, const Batch& batch) = 0;
  // Overwrites the gradients with those of the slot's batch. `slope` is the gradient by the output,
  // and may be overwritten; the last stage has its own. Returns the gradient by the input, which
  // stays until the next backward pass in this slot; nothing for the first stage.
  virtual std::span<const float> backward(size_t slot, std::span<float> slope) = 0;
};

}  // namespace tutti
