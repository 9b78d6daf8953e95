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
    const Tag tag(Purpose::kParameters, Tag::wrapped(training_.steps()));
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

  Taxonomy taxonomy() const override {
    return {.structure = "client-server",
            .parallelism = "data",
            .optimisation = "decentralised",
            .timing = Timing::kSynchronous,
            .pattern = "star",
            .data = "shares of each batch",
            .stragglers = "everybody waits at merges",
            .communication = "parameters at merges",
            .computation = "a share of the batch"};
  }

  // Costs are averages over all steps.
  Plan plan(const PlanInput& input) const override {
    Plan plan = begin_plan(input, taxonomy());
    refuse_deterministic(input.task, "model_averaging");
    const auto bytes = static_cast<double>(input.architecture.parameter_count * sizeof(float));
    const double merges = merges_per_step(input);
    const auto others = static_cast<double>(input.cluster.workers - 1);
    plan.recurs_every = std::max<int64_t>(1, std::llround(1 / merges));
    set_workers(plan, input,
                {.bytes_sent = merges * bytes, .messages = merges, .extra_memory = bytes});
    set_traffic(plan.nodes[kMaster],
                {.bytes_sent = merges * others * bytes, .messages = merges * others});
    return plan;
  }

  NodeResult run(Context& context) const override {
    ModelAveragingWorker(context, config_.merge_every).run();
    return {context.members};
  }

 private:
  // The last step merges too. Before the data is read the number of steps is unknown, and one merge
  // per step is the upper bound.
  double merges_per_step(const PlanInput& input) const {
    if (input.data.train == 0) return 1;
    const auto samples = static_cast<double>(input.data.train);
    const double in_epoch = std::ceil(samples / static_cast<double>(input.task.global_batch));
    double steps = in_epoch * static_cast<double>(input.task.epochs);
    if (input.task.max_steps > 0)
      steps = std::min(steps, static_cast<double>(input.task.max_steps));
    if (config_.merge_every <= 0) return 1 / steps;
    return std::min(1.0, std::ceil(steps / in_epoch / config_.merge_every - 1e-9) / steps);
  }

  ModelAveragingConfig config_;
};

}  // namespace

std::vector<Variant> model_averaging_variants() { return {{"model-averaging", {}}}; }

std::unique_ptr<Strategy> make_model_averaging() { return std::make_unique<ModelAveraging>(); }

}  // namespace tutti
