#include "strategies/scheduled/scheduled.h"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/exact_sum.h"
#include "collectives/topology.h"
#include "core/error.h"
#include "core/units.h"
#include "models/builder.h"
#include "strategies/scheduled/scheduler.h"
#include "strategies/scheduled/worker.h"

namespace tutti {
namespace {

constexpr const char* kScheduler = "scheduler";

class Scheduled : public Strategy {
 public:
  void visit(Visitor& v) override { tutti::visit(v, config_); }

  Taxonomy taxonomy() const override {
    return {.structure = "client-server",
            .parallelism = "model",
            .optimisation = "centralised",
            .timing = Timing::kSynchronous,
            .pattern = "schedule, all-reduce",
            .data = "features of all samples",
            .stragglers = "everybody waits",
            .communication = "sums of residuals",
            .computation = "its part of the scheduled weights"};
  }

  Plan plan(const PlanInput& input) const override {
    Plan plan = begin_plan(input, taxonomy(), {.roles = workers_and(input.cluster, kScheduler)});
    tutti::validate(config_, input.task);
    validate_optimizer(input.optimizer);
    validate_features(input);
    plan.steps = rounds_of(input).total();
    plan.samples = 0;
    plan.reasons = explain(input);
    const auto parallel = static_cast<double>(rounds_of(input).parallel());
    const auto workers = static_cast<double>(input.cluster.workers);
    const auto parameters = static_cast<double>(input.architecture.parameter_count);
    const Volume volume = volume_of(input);
    for (NodePlan& node : plan.nodes) {
      node.bytes_sent = static_cast<double>(volume.elements * element_bytes(input)) +
                        sizeof(double) * (2 + parallel / workers);
      node.messages = static_cast<double>(volume.messages) + 1;
      node.memory_bytes = 2 * parameters * sizeof(float) + column_bytes(input);
    }
    NodePlan& scheduler = plan.nodes.back();
    set_no_model(scheduler);  // it knows weights by their numbers
    set_traffic(scheduler,
                {.bytes_sent = workers * sizeof(uint32_t) * parallel, .messages = workers});
    // It holds a priority of each weight, and all columns when it looks for conflicts.
    const bool looks = looks_for_conflicts();
    scheduler.memory_bytes =
        parameters * sizeof(double) +
        (looks ? parameters * static_cast<double>(input.data.train) * sizeof(double) : 0);
    return plan;
  }

  NodeResult run(Context& context) const override {
    context.node.membership().end_waits_on_any_loss(true);
    if (context.node.endpoint().role(context.node.endpoint().rank()) == kScheduler)
      run_coordinate_scheduler(context, config_);
    else
      CoordinateWorker(context, config_).run();
    return {context.members};
  }

 private:
  static void validate_optimizer(const OptimizerConfig& optimizer) {
    const char* key = optimizer.clip_norm > 0      ? "optimizer.clip_norm"
                      : optimizer.weight_decay > 0 ? "optimizer.weight_decay"
                                                   : nullptr;
    if (key)
      throw ConfigError(key, fmt::format("strategy.kind = \"scheduled\" solves for each weight and "
                                         "takes no gradient steps that {} could change; set it to "
                                         "0, or use task.model.l2",
                                         key));
  }

  static void validate_features(const PlanInput& input) {
    if (coordinates_of(input) < static_cast<size_t>(input.cluster.workers))
      throw ConfigError("cluster.workers",
                        fmt::format("strategy.kind = \"scheduled\" deals {} features to "
                                    "cluster.workers = {}; use at most as many workers",
                                    coordinates_of(input), input.cluster.workers));
  }

  std::vector<std::string> explain(const PlanInput& input) const {
    const RoundPlan rounds = rounds_of(input);
    const size_t features = coordinates_of(input);
    std::vector<std::string> lines = {
        fmt::format("{} features over {} workers, at most {} of them in a round, schedule {}",
                    features, input.cluster.workers, rounds.parallel(), word_of(config_.schedule)),
        fmt::format("a pass over all features takes {} rounds; the job has {}",
                    (features + rounds.parallel() - 1) / rounds.parallel(), rounds.total())};
    if (looks_for_conflicts())
      lines.push_back(fmt::format(
          "features of correlation {} or more are not updated in the same round; the scheduler "
          "has all columns to look: {}",
          config_.conflict,
          human_quantity(static_cast<double>(input.data.train * features * sizeof(double)),
                         Unit::kBytes)));
    lines.emplace_back(
        "global_batch and the optimizer do not matter: each round solves for its weights on all "
        "samples");
    return lines;
  }

  bool looks_for_conflicts() const {
    return config_.schedule == CoordinateOrder::kPriority && config_.conflict < 1;
  }
  static size_t coordinates_of(const PlanInput& input) {
    return input.architecture.parameter_count - 1;
  }
  RoundPlan rounds_of(const PlanInput& input) const {
    return {input.task, input.data.train, coordinates_of(input),
            static_cast<size_t>(config_.parallel)};
  }
  static size_t element_bytes(const PlanInput& input) {
    return input.task.deterministic ? sizeof(ExactSum) : sizeof(double);
  }
  Volume volume_of(const PlanInput& input) const {
    Group group{.ranks = {}, .index = 0, .racks = {}};
    for (Rank rank = 0; rank < input.cluster.workers; ++rank) group.ranks.push_back(rank);
    return volume_sent(topology(config_.topology).rounds(group, input.data.train + 2));
  }
  // A worker's columns, the residual and its change.
  double column_bytes(const PlanInput& input) const {
    const auto workers = static_cast<size_t>(input.cluster.workers);
    const size_t own = (coordinates_of(input) + workers - 1) / workers;
    return static_cast<double>(input.data.train *
                               ((own + 3) * sizeof(double) + element_bytes(input)));
  }

  ScheduledConfig config_;
};

}  // namespace

std::vector<Variant> scheduled_variants() {
  return {{"scheduled-priority", {"schedule=priority"}},
          {"scheduled-random", {"schedule=random"}},
          {"scheduled-cyclic", {"schedule=cyclic"}}};
}

std::unique_ptr<Strategy> make_scheduled() { return std::make_unique<Scheduled>(); }

}  // namespace tutti
