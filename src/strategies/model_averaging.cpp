#include "strategies/model_averaging.h"

#include <algorithm>
#include <cmath>

#include "core/bytes.h"
#include "fabric/exchange.h"
#include "strategies/averaging.h"
#include "strategies/local_training.h"

namespace tutti {
namespace {

// The master is a worker as well: a node that only merges would be idle nearly all of the time.
constexpr Rank kMaster = 0;

class ModelAveragingWorker {
 public:
  ModelAveragingWorker(Context& context, double merge_every)
      : context_(context),
        merge_every_(merge_every),
        next_merge_(merge_every),
        training_(context, Pace::kLockstep),
        arrived_(is_master() ? context.model.parameters().size() : 0) {}

  void run() {
    context_.node.membership().end_waits_on_any_loss(true);
    while (!training_.over()) {
      training_.gradient();
      training_.update();
      training_.end_step();
      if (!merge_due()) continue;
      merge();
      // There is no common model between merges, so quality is measured after the next one.
      if (training_.due() && training_.evaluate(context_.members)) return;
    }
  }

 private:
  bool is_master() const { return context_.node.endpoint().rank() == kMaster; }

  bool merge_due() {
    if (training_.over()) return true;
    if (merge_every_ <= 0 || training_.epoch() + 1e-9 < next_merge_) return false;
    next_merge_ = next_due(merge_every_, training_.epoch());
    return true;
  }

  void merge() {
    const Tag tag(Purpose::kParameters, static_cast<uint64_t>(training_.steps()));
    const std::span<float> own = context_.model.parameters();
    PhaseScope scope(context_.watch, Phase::kWait);
    if (!is_master()) {
      Handle answer = context_.node.endpoint().receive(kMaster, tag, writable_bytes_of(own));
      send(context_.node, kMaster, tag, bytes_of<float>(own));
      finish(context_.node, answer);
      return;
    }
    // In the order of the ranks, whoever comes first: the sum is the same in every run.
    for (const Rank worker : context_.members) {
      if (worker == kMaster) continue;
      receive(context_.node, worker, tag, writable_bytes_of(arrived_.span()));
      scope.change(Phase::kCommunicate);
      on_vectors(context_, 3, own.size(), [&] {
        for (size_t i = 0; i < own.size(); ++i) own[i] += arrived_.data()[i];
      });
    }
    const float share = 1.0f / static_cast<float>(context_.members.size());
    on_vectors(context_, 2, own.size(), [&] {
      for (float& value : own) value *= share;
    });
    std::vector<Handle> answers;
    for (const Rank worker : context_.members)
      if (worker != kMaster)
        answers.push_back(context_.node.endpoint().send(worker, tag, bytes_of<float>(own)));
    for (Handle& answer : answers) finish(context_.node, answer);
  }

  Context& context_;
  const double merge_every_;
  double next_merge_;
  LocalTraining training_;
  Buffer<float> arrived_;  // the master's: the model of the worker whose turn it is
};

class ModelAveraging : public Strategy {
 public:
  void visit(Visitor& v) override {
    v.field("merge_every", config_.merge_every, kNotNegative,
            "epochs between merges of the workers' models; 0: once, at the end");
  }

  void validate(const TaskConfig& task, const ClusterConfig&) const override {
    refuse_deterministic(task, "model_averaging");
  }

  Taxonomy taxonomy() const override {
    return {"client-server", "data", "decentralised", "synchronous", "star"};
  }

  // Returns the cost of the master, as the average over all steps.
  StepCost step_cost(const Plan& plan) const override {
    const auto others = static_cast<double>(plan.cluster.workers - 1);
    const auto bytes = static_cast<double>(plan.architecture.parameter_count * sizeof(float));
    const double merges = merges_per_step(plan);
    return {
        .bytes_sent = merges * others * bytes, .messages = merges * others, .extra_memory = bytes};
  }

  void run(Context& context) const override {
    ModelAveragingWorker(context, config_.merge_every).run();
  }

 private:
  // The last step merges too. Before the data is read the number of steps is unknown, and one merge
  // per step is the upper bound.
  double merges_per_step(const Plan& plan) const {
    if (plan.samples == 0) return 1;
    const auto samples = static_cast<double>(plan.samples);
    const double in_epoch = std::ceil(samples / static_cast<double>(plan.task.global_batch));
    double steps = in_epoch * static_cast<double>(plan.task.epochs);
    if (plan.task.max_steps > 0) steps = std::min(steps, static_cast<double>(plan.task.max_steps));
    if (config_.merge_every <= 0) return 1 / steps;
    return std::min(1.0, std::ceil(steps / in_epoch / config_.merge_every - 1e-9) / steps);
  }

  ModelAveragingConfig config_;
};

}  // namespace

std::vector<Variant> model_averaging_variants() { return {{"model-averaging", {}}}; }

std::unique_ptr<Strategy> make_model_averaging() { return std::make_unique<ModelAveraging>(); }

}  // namespace tutti
