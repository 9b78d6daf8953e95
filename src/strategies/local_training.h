// One worker's own training: its share of the batches, the schedule, its optimizer, its records.
// What decentralised strategies have in common; how workers come to agree is each strategy's own.
//
// A step is: gradient(), update(), end_step(). In lockstep every worker takes the same steps, and
// all of them together make a global batch. At a free pace a worker takes what steps it can and
// all together stop after as many samples as the task has; a fast worker then sees its share more
// often than a slow one. Who has trained on how many samples travels with the strategy's messages.
#pragma once

#include "strategies/batch_sequence.h"
#include "strategies/strategy.h"

namespace tutti {

class LocalTraining {
 public:
  LocalTraining(Context& context, Pace pace);

  // The gradient of this worker's share of its next batch, at the parameters as they are. Scaled
  // such that the mean over all workers is the mean over the global batch, also when shares differ
  // by a sample. Throws DivergedError.
  void gradient(const Model::Ready& ready = [](Range) {});
  // The same of a sparse model, for a strategy that moves rows: touch() gathers the batch and
  // returns the keys of the rows that it touches, ascending, for the strategy to fetch;
  // sparse_gradient() computes on them alone, and the strategy updates them.
  std::span<const uint64_t> touch();
  void sparse_gradient();
  // The rate of the step that is under way or, between two steps, of the last one.
  double step_rate() const { return rate_; }
  // One optimizer step on the model's parameters by the model's gradients.
  void update();
  // Records the step and moves on to the next. `staleness`: updates of others that were missing
  // from the parameters; none when this worker alone changes them.
  void end_step(double staleness = 0);

  int64_t steps() const { return progress_.whole_steps(); }  // of this worker
  int64_t own_samples() const { return own_samples_; }       // of this worker
  // What all workers have trained on. Follows from the steps in lockstep; told at a free pace.
  int64_t samples() const { return progress_.samples; }
  void set_samples(int64_t known) { sequence_.set_samples(known, known); }
  void set_samples(int64_t known, int64_t likely) { sequence_.set_samples(known, likely); }
  double epoch() const { return progress_.epochs; }  // with its fraction
  bool over() const { return sequence_.over(); }     // the epochs or the steps are done
  double elapsed_s() const { return context_.node.clock().now() - started_s_; }

  // True when quality is to be measured now.
  bool due() const { return over() || progress_.is_due(); }
  // Measures the model's parameters as they are and records it. Called by each of `members`; true
  // when training ends because the target is reached.
  bool evaluate(std::span<const Rank> members);
  void pass_over() { progress_.begin_evaluation(context_.task); }  // somebody else measures

 private:
  void gather();
  float scale() const;
  void note_loss(double loss);
  EvaluationRow measure(std::span<const Rank> members);

  Context& context_;
  const Pace pace_;
  Batches batches_;
  TrainingProgress progress_;
  BatchSequence sequence_;
  Layout layout_;
  std::unique_ptr<Optimizer> optimizer_;
  const double started_s_;
  Batch batch_;
  std::vector<uint64_t> keys_;  // that it touches
  int64_t own_samples_ = 0;
  double loss_ = 0, began_s_ = 0, rate_ = 0;
};

// Throws ConfigError when the task asks for deterministic = true: workers whose parameters differ
// give a result that depends on how many they are.
void refuse_deterministic(const TaskConfig& task, std::string_view strategy);

// While it lives, the model has other parameters: those in `values`, which holds the model's own.
class ParametersInstead {
 public:
  ParametersInstead(Context& context, std::span<float> values) : context_(context), own_(values) {
    swap();
  }
  ~ParametersInstead() { swap(); }
  ParametersInstead(const ParametersInstead&) = delete;
  ParametersInstead& operator=(const ParametersInstead&) = delete;

 private:
  void swap();
  Context& context_;
  std::span<float> own_;
};

}  // namespace tutti
