#include "strategies/local_sgd.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "core/bytes.h"
#include "core/error.h"
#include "optimizers/momentum.h"
#include "optimizers/nesterov.h"
#include "strategies/averaging.h"
#include "strategies/local_training.h"
#include "strategies/parameter_layout.h"
#include "strategies/synchronous.h"

namespace tutti {
namespace {

// With these settings local SGD is mini-batch SGD, and averages gradients instead of parameters:
// the same for linear optimizers, and for the others their state stays the same everywhere.
bool is_synchronous(const LocalSgdConfig& c) {
  return c.sync_every == 1 && c.outer.kind == OuterKind::kSgd && c.outer.lr == 1 &&
         c.fragments == 1 && c.mixing == 0;
}

OptimizerConfig optimizer_of(const OuterConfig& outer) {
  OptimizerConfig config(word_of(outer.kind));
  config.lr = outer.lr;
  if (outer.kind == OuterKind::kMomentum) config.rule.get<MomentumRule>().momentum = outer.momentum;
  if (outer.kind == OuterKind::kNesterov) config.rule.get<NesterovRule>().momentum = outer.momentum;
  return config;
}

// A part of the parameters that is averaged as a whole.
struct Fragment {
  Range range;
  std::unique_ptr<Averaging> mean;
  std::unique_ptr<Optimizer> outer;
  int64_t begun_at = -1;    // step at which the average under way was begun; -1: none is
  int64_t current_at = -1;  // step of the last average that was used
};

class LocalSgdWorker {
 public:
  LocalSgdWorker(Context& context, const LocalSgdConfig& config)
      : context_(context),
        config_(config),
        training_(context, Pace::kLockstep),
        gradients_(context, context.members, context.model.parameters().size()),
        global_(context.model.parameters().size()),
        difference_(context.model.parameters().size()) {
    const auto count = static_cast<size_t>(config.fragments);
    for (size_t i = 0; i < count; ++i) {
      const Range range = part_of(global_.size(), count, i);
      Fragment& fragment = fragments_.emplace_back();
      fragment.range = range;
      fragment.mean = std::make_unique<Averaging>(context, context.members, range.size());
      fragment.outer = make_optimizer(optimizer_of(config.outer),
                                      outer_layout_of(context.model.architecture(), range));
    }
    adopt_own();
  }

  void run() {
    context_.node.membership().end_waits_on_any_loss(true);
    bool stop = false;
    while (!stop) {
      const bool together = averages_gradients();
      training_.gradient([&](Range) { advance(); });
      if (together)
        gradients_.average(context_.model.gradients(),
                           Tag(Purpose::kGradient, Tag::wrapped(training_.steps())));
      training_.update();
      training_.end_step();
      const bool agreed = together ? stay_agreed() : synchronise();
      if (agreed && training_.due()) {
        const ParametersInstead measured(context_, global_.span());
        stop = training_.evaluate(context_.members);
      }
      stop = stop || training_.over();
    }
    on_vectors(context_, 2, global_.size(), [&] {
      std::copy_n(global_.data(), global_.size(), context_.model.parameters().begin());
    });
  }

 private:
  bool averages_gradients() const {
    return is_synchronous(config_) || training_.epoch() < config_.post_local;
  }

  void adopt_own() {
    on_vectors(context_, 2, global_.size(), [&] {
      std::copy_n(context_.model.parameters().begin(), global_.size(), global_.data());
    });
  }

  // After averaged gradients every worker has the same parameters: they are the global ones.
  bool stay_agreed() {
    if (training_.due() || !averages_gradients()) adopt_own();
    return true;
  }

  // True when a part of the global parameters is new, or all of them are at the end.
  bool synchronise() {
    const int64_t now = training_.steps();
    bool agreed = false;
    for (Fragment& f : fragments_)
      if (f.begun_at >= 0 && now == f.begun_at + config_.overlap) agreed = use(f);
    for (size_t i = 0; i < fragments_.size(); ++i) {
      const int64_t offset = static_cast<int64_t>(i) * config_.sync_every / config_.fragments;
      if ((now + offset) % config_.sync_every != 0) continue;
      begin(fragments_[i]);
      if (config_.overlap == 0) agreed = use(fragments_[i]);
    }
    if (!training_.over()) return agreed;
    for (Fragment& f : fragments_)
      if (f.begun_at >= 0) use(f);
    for (Fragment& f : fragments_)
      if (f.current_at < now) begin(f);
    for (Fragment& f : fragments_)
      if (f.begun_at >= 0) use(f);
    return true;
  }

  void begin(Fragment& f) {
    const auto part = static_cast<uint64_t>(&f - fragments_.data());
    on_vectors(context_, 3, f.range.size(), [&] {
      const std::span<float> own = context_.model.parameters();
      for (size_t i = f.range.begin; i < f.range.end; ++i)
        difference_.data()[i] = global_.data()[i] - own[i];
    });
    f.begun_at = training_.steps();
    f.mean->start(difference_.span().subspan(f.range.begin, f.range.size()),
                  Tag(Purpose::kParameters, Tag::wrapped(f.begun_at), part));
  }

  bool use(Fragment& f) {
    f.mean->finish();
    on_vectors(context_, 6, f.range.size(), [&] {
      const auto global = global_.span().subspan(f.range.begin, f.range.size());
      f.outer->step(global, difference_.span().subspan(f.range.begin, f.range.size()),
                    config_.outer.lr);
      const auto own = context_.model.parameters().subspan(f.range.begin, f.range.size());
      const auto kept = static_cast<float>(config_.mixing);
      for (size_t i = 0; i < own.size(); ++i) own[i] = global[i] + kept * (own[i] - global[i]);
    });
    f.current_at = f.begun_at;
    f.begun_at = -1;
    return true;
  }

  void advance() {
    for (Fragment& f : fragments_)
      if (f.begun_at >= 0) f.mean->advance();
  }

  Context& context_;
  const LocalSgdConfig& config_;
  LocalTraining training_;
  Averaging gradients_;
  Buffer<float> global_;             // what all workers agree on: its quality counts
  Buffer<float> difference_;         // of this worker from it, then of all on average
  std::vector<Fragment> fragments_;  // last: cancelled before the buffers go
};

class LocalSgd : public Strategy {
 public:
  void visit(Visitor& v) override {
    v.field("sync_every", config_.sync_every, kAtLeastOne, "steps between averages");
    v.field("post_local", config_.post_local, kNotNegative,
            "epochs of synchronous training before workers go on their own");
    component(
        v, "outer", config_.outer.kind,
        [&](Visitor& inner) {
          inner.field("lr", config_.outer.lr, kPositive, "rate of the outer optimizer");
          if (config_.outer.kind == OuterKind::kMomentum ||
              config_.outer.kind == OuterKind::kNesterov)
            inner.field("momentum", config_.outer.momentum, kBelowOne,
                        "share of its velocity that is kept");
        },
        "what takes the averaged difference for a gradient; sgd with lr = 1 is the plain average");
    v.field("fragments", config_.fragments, kAtLeastOne,
            "parts of the parameters that are averaged in turn");
    v.field("overlap", config_.overlap, kNotNegative,
            "steps during which an average is under way while training goes on");
    v.field("mixing", config_.mixing, {0, 0.999999999},
            "share of its own parameters that a worker keeps when an average arrives");
  }

  Taxonomy taxonomy() const override {
    return {.structure = "peer-to-peer",
            .parallelism = "data",
            .optimisation = "decentralised",
            .timing = Timing::kSynchronous,
            .pattern = "ring",
            .data = "shares of each batch",
            .stragglers = "everybody waits at averages",
            .communication = "averages of parameters, now and then",
            .computation = "a share of the batch"};
  }

  Plan plan(const PlanInput& input) const override {
    Plan plan = begin_plan(input, taxonomy());
    validate(input.task);
    if (is_synchronous(config_)) plan.equivalence = synchronous_class(input.task);
    plan.recurs_every = config_.sync_every;
    set_workers(plan, input, step_cost(input));
    return plan;
  }

  NodeResult run(Context& context) const override {
    LocalSgdWorker(context, config_).run();
    return {context.members};
  }

 private:
  void validate(const TaskConfig& task) const {
    refuse_deterministic(task, "local_sgd");
    if (config_.fragments > config_.sync_every)
      throw ConfigError("strategy.fragments",
                        fmt::format("strategy.fragments = {} are averaged in turn within "
                                    "strategy.sync_every = {} steps, one at a step; lower the one "
                                    "or raise the other",
                                    config_.fragments, config_.sync_every));
    if (config_.overlap >= config_.sync_every)
      throw ConfigError("strategy.overlap",
                        fmt::format("strategy.overlap = {} must be less than strategy.sync_every "
                                    "= {}: an average ends before the next of its part begins",
                                    config_.overlap, config_.sync_every));
  }

  StepCost step_cost(const PlanInput& input) const {
    const size_t count = input.architecture.parameter_count;
    StepCost cost = averaging_cost(input.cluster.workers, count);
    cost.bytes_sent /= static_cast<double>(config_.sync_every);
    cost.messages *= static_cast<double>(config_.fragments);
    cost.messages /= static_cast<double>(config_.sync_every);
    cost.extra_memory =
        2.0 * static_cast<double>(count * sizeof(float)) +
        optimizer_cost(optimizer_of(config_.outer), outer_layout_of(input.architecture, {0, count}))
                .values *
            sizeof(float);
    return cost;
  }

  LocalSgdConfig config_;
};

}  // namespace

std::vector<Variant> local_sgd_variants() {
  // The published rate and momentum, 0.7 and 0.9, are for hundreds of steps of AdamW between
  // averages. With these the outer steps add up to about the averages themselves.
  const std::string outer = "outer={kind=\"nesterov\", lr=0.5, momentum=0.5}";
  const std::string averages = "outer={kind=\"sgd\", lr=1}";
  const std::string every = "sync_every=16";
  return {{"local-sgd-16", {every, averages, "fragments=1", "overlap=0", "mixing=0"}},
          {"diloco", {every, outer, "fragments=1", "overlap=0", "mixing=0"}},
          {"diloco-streaming", {every, outer, "fragments=4", "overlap=2", "mixing=0.5"}}};
}

std::unique_ptr<Strategy> make_local_sgd() { return std::make_unique<LocalSgd>(); }

}  // namespace tutti
