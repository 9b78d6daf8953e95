#include "strategies/elastic_averaging.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/bytes.h"
#include "core/error.h"
#include "strategies/averaging.h"
#include "strategies/local_training.h"
#include "strategies/pairwise.h"

namespace tutti {
namespace {

// Returns alpha at this learning rate. With a penalty it follows the schedule of the rate; a given
// moving rate does not.
double moving_rate(const ElasticAveragingConfig& config, const Context& context, double rate) {
  if (config.penalty > 0) return rate * config.penalty;
  if (config.moving_rate > 0) return config.moving_rate;
  return 0.9 / static_cast<double>(context.cluster.workers);
}

class ElasticWorker {
 public:
  ElasticWorker(Context& context, const ElasticAveragingConfig& config, Pace pace)
      : context_(context),
        config_(config),
        sync_every_(config.sync_every),
        parameters_(context.model.parameters()),
        training_(context, pace),
        centre_(parameters_.size()) {
    copy(parameters_, centre_.span());
  }

 protected:
  void copy(std::span<const float> from, std::span<float> to) {
    on_vectors(context_, 2, from.size(), [&] { std::copy(from.begin(), from.end(), to.begin()); });
  }
  bool evaluate_centre(std::span<const Rank> members) {
    const ParametersInstead measured(context_, centre_.span());
    return training_.evaluate(members);
  }

  // Returns the moving rate of the step that is under way, or of the last one.
  float rate_now() const {
    return static_cast<float>(moving_rate(config_, context_, training_.step_rate()));
  }

  Context& context_;
  const ElasticAveragingConfig& config_;
  const int64_t sync_every_;
  std::span<float> parameters_;
  LocalTraining training_;
  Buffer<float> centre_;
};

// x_i' = x_i - lr g(x_i) - a (x_i - c);  c' = c + a sum of (x_i - c), all with the old values.
class SynchronousElastic : ElasticWorker {
 public:
  SynchronousElastic(Context& context, const ElasticAveragingConfig& config)
      : ElasticWorker(context, config, Pace::kLockstep),
        distance_(parameters_.size()),
        averaging_(context, context.members, parameters_.size()) {}

  void run() {
    context_.node.membership().end_waits_on_any_loss(true);
    bool stop = false;
    while (!stop) {
      const int64_t step = training_.steps();
      const bool pull = step > 0 && step % sync_every_ == 0;
      if (pull) begin(static_cast<uint64_t>(step));
      training_.gradient([&](Range) {
        if (pull) averaging_.advance();
      });
      if (pull) pull_worker();
      training_.update();
      if (pull) pull_centre();
      training_.end_step();
      stop = (training_.due() && evaluate_centre(context_.members)) || training_.over();
    }
    copy(centre_.span(), parameters_);
  }

 private:
  void begin(uint64_t step) {
    on_vectors(context_, 3, parameters_.size(), [&] {
      for (size_t i = 0; i < parameters_.size(); ++i)
        distance_.data()[i] = parameters_[i] - centre_.data()[i];
    });
    averaging_.start(distance_.span(), Tag(Purpose::kParameters, Tag::wrapped(step)));
  }
  void pull_worker() {
    const float rate = rate_now();
    on_vectors(context_, 3, parameters_.size(), [&] {
      for (size_t i = 0; i < parameters_.size(); ++i)
        parameters_[i] -= rate * (parameters_[i] - centre_.data()[i]);
    });
  }
  void pull_centre() {
    averaging_.finish();
    const float all = rate_now() * static_cast<float>(context_.members.size());
    on_vectors(context_, 3, parameters_.size(), [&] {
      for (size_t i = 0; i < parameters_.size(); ++i)
        centre_.data()[i] += all * distance_.data()[i];
    });
  }

  Buffer<float> distance_;  // of this worker from the centre, then of all on average
  Averaging averaging_;     // of it: cancelled before the buffer goes
};

// Whenever a worker comes: m = a (x_i - c);  c' = c + m;  x_i' = x_i - m.
// The first of the workers that are left has the centre. One that takes over knows where the centre
// was some time ago, at best; its own parameters, which were pulled there, are a newer guess.
class AsynchronousElastic : ElasticWorker {
 public:
  AsynchronousElastic(Context& context, const ElasticAveragingConfig& config)
      : ElasticWorker(context, config, Pace::kFree),
        me_(context.node.endpoint().rank()),
        exchange_(context, moving_rate(config, context, context.optimizer.lr),
                  {Answering::kFirst, [this] { return begin_centre(); }}) {}

  // Returns who is left in the end.
  std::vector<Rank> run() {
    int64_t pulled_at = 0;
    while (!training_.over() && !exchange_.reports().stopped()) {
      // The centre is not what the gradient is computed on: it may move meanwhile.
      training_.gradient([&](Range) {
        exchange_.set_weight(rate_now());
        exchange_.serve();
      });
      training_.update();
      training_.end_step();
      exchange_.set_steps(training_.steps());
      exchange_.set_own_samples(training_.own_samples());
      exchange_.serve();
      exchange_.accept(parameters_);
      if (training_.steps() - pulled_at >= sync_every_ && exchange_.idle()) {
        pulled_at = training_.steps();
        exchange_.leads() ? pull_here() : exchange_.request(exchange_.leader(), parameters_);
      }
      training_.set_samples(exchange_.reports().samples(), exchange_.likely_samples());
      if (training_.due() && !training_.over()) measure();
    }
    std::vector<Rank> left = exchange_.finish(parameters_);
    training_.set_samples(exchange_.reports().samples());
    broadcast(context_, left, centre_.span(), Tag(Purpose::kParameters, 0, PairPart::kCentre));
    copy(centre_.span(), parameters_);
    training_.evaluate(left);
    return left;
  }

 private:
  // Rank 0 begins with it; any other takes over from one that is lost.
  std::span<float> begin_centre() {
    if (me_ > 0) {
      context_.log.warn("has the centre from now on, and begins it with its own parameters");
      copy(parameters_, centre_.span());
    }
    return centre_.span();
  }

  void measure() {
    if (!exchange_.leads()) return training_.pass_over();
    if (evaluate_centre(std::span(&me_, 1))) exchange_.stop();
  }

  void pull_here() {
    const float rate = rate_now();
    on_vectors(context_, 4, parameters_.size(), [&] {
      for (size_t i = 0; i < parameters_.size(); ++i) {
        const float moved = rate * (parameters_[i] - centre_.data()[i]);
        parameters_[i] -= moved;
        centre_.data()[i] += moved;
      }
    });
  }

  const Rank me_;
  PairwiseExchange exchange_;
};

class ElasticAveraging : public Strategy {
 public:
  void visit(Visitor& v) override {
    choice(v, "mode", config_.mode, "all pull at once, or each when it has taken its steps");
    v.field("sync_every", config_.sync_every, kAtLeastOne, "steps between pulls");
    v.field("moving_rate", config_.moving_rate, kFraction,
            "share of the distance by which worker and centre move; 0: 0.9 / workers");
    v.field("penalty", config_.penalty, kNotNegative,
            "on the distance: gives the moving rate as the learning rate of each step times this; "
            "0: not "
            "used");
  }

  Taxonomy taxonomy() const override {
    const bool sync = in_lockstep();
    return {.structure = sync ? "peer-to-peer" : "client-server",
            .parallelism = "data",
            .optimisation = "decentralised",
            .timing = sync ? Timing::kSynchronous : Timing::kAsynchronous,
            .pattern = sync ? "ring" : "star",
            .data = "shares of each batch",
            .stragglers = sync ? "everybody waits at averages" : "nobody waits",
            .communication = "parameters, now and then",
            .computation = "a share of the batch"};
  }

  Plan plan(const PlanInput& input) const override {
    Plan plan = begin_plan(input, taxonomy());
    validate(input.task, input.cluster);
    plan.recurs_every = config_.sync_every;
    set_workers(plan, input, step_cost(input, 0));
    for (Rank rank = 1; rank < plan.workers; ++rank)
      set_traffic(plan.nodes[static_cast<size_t>(rank)], step_cost(input, rank));
    if (in_lockstep()) return plan;
    for (NodePlan& node : plan.nodes) node.may_be_lost = true;
    plan.reasons.emplace_back(
        "any worker may be lost, also the one that has the centre and keeps the record: the next "
        "one goes on with both");
    return plan;
  }

  NodeResult run(Context& context) const override {
    if (!in_lockstep())
      return {joined_from_the_start(context) ? AsynchronousElastic(context, config_).run()
                                             : std::vector<Rank>()};
    SynchronousElastic(context, config_).run();
    return {context.members};
  }

 private:
  bool in_lockstep() const { return config_.mode == Pace::kLockstep; }

  void validate(const TaskConfig& task, const ClusterConfig& cluster) const {
    refuse_deterministic(task, "elastic_averaging");
    if (config_.moving_rate > 0 && config_.penalty > 0)
      throw ConfigError("strategy.penalty",
                        "strategy.penalty and strategy.moving_rate both say how hard workers are "
                        "pulled; give one of them");
    if (in_lockstep() && config_.moving_rate * static_cast<double>(cluster.workers) > 1)
      throw ConfigError("strategy.moving_rate",
                        fmt::format("strategy.moving_rate = {} times cluster.workers = {} is more "
                                    "than 1: the centre would move beyond the workers; lower it, "
                                    "or take strategy.mode = \"async\"",
                                    config_.moving_rate, cluster.workers));
    if (!in_lockstep()) refuse_cost_only(cluster, "strategy.mode = \"async\"");
  }

  StepCost step_cost(const PlanInput& input, Rank rank) const {
    const size_t count = input.architecture.parameter_count;
    const auto bytes = static_cast<double>(count * sizeof(float));
    const auto every = static_cast<double>(config_.sync_every);
    if (in_lockstep()) {
      const StepCost cost = averaging_cost(input.cluster.workers, count);
      return {.bytes_sent = cost.bytes_sent / every,
              .messages = cost.messages / every,
              .extra_memory = 2 * bytes};
    }
    // A request, or as rank 0 the answers to all of them.
    const double messages = rank == 0 ? static_cast<double>(input.cluster.workers - 1) : 1.0;
    return {.bytes_sent = messages * bytes / every,
            .messages = messages / every,
            .extra_memory = 8 * bytes};
  }

  ElasticAveragingConfig config_;
};

}  // namespace

std::vector<Variant> elastic_averaging_variants() {
  return {{"elastic-averaging", {"mode=sync"}}, {"elastic-averaging-async", {"mode=async"}}};
}

std::unique_ptr<Strategy> make_elastic_averaging() { return std::make_unique<ElasticAveraging>(); }

}  // namespace tutti
