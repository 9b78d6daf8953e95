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

  void validate(const TaskConfig& task, const ClusterConfig&) const override {
    tutti::validate(config_, task);
  }

  void validate_optimizer(const OptimizerConfig& optimizer) const override {
    const char* key = optimizer.clip_norm > 0      ? "optimizer.clip_norm"
                      : optimizer.weight_decay > 0 ? "optimizer.weight_decay"
                                                   : nullptr;
    if (key)
      throw ConfigError(key, fmt::format("strategy.kind = \"scheduled\" solves for each weight and "
                                         "takes no gradient steps that {} could change; set it to "
                                         "0, or use task.model.l2",
                                         key));
  }

  void validate_plan(const Plan& plan) const override {
    if (coordinates_of(plan) < static_cast<size_t>(plan.cluster.workers))
      throw ConfigError("cluster.workers",
                        fmt::format("strategy.kind = \"scheduled\" deals {} features to "
                                    "cluster.workers = {}; use at most as many workers",
                                    coordinates_of(plan), plan.cluster.workers));
  }

  Taxonomy taxonomy() const override {
    return {"client-server", "model", "centralised", "synchronous", "schedule, all-reduce"};
  }

  std::vector<std::string> roles(const ClusterConfig& cluster) const override {
    std::vector<std::string> roles = Strategy::roles(cluster);
    roles.emplace_back(kScheduler);
    return roles;
  }

  int64_t steps(const TaskConfig& task, const Data& data) const override {
    const auto features = static_cast<size_t>(elements(data.dataset->sample_shape()));
    return RoundPlan(task, features, static_cast<size_t>(config_.parallel)).total();
  }

  StepCost step_cost(const Plan& plan) const override {
    const auto parallel = static_cast<double>(rounds_of(plan).parallel());
    const auto workers = static_cast<double>(plan.cluster.workers);
    const Volume volume = volume_of(plan);
    const StepCost worker{.bytes_sent = static_cast<double>(volume.elements * element_bytes(plan)) +
                                        sizeof(double) * (2 + parallel / workers),
                          .messages = static_cast<double>(volume.messages) + 1};
    const StepCost scheduler{.bytes_sent = workers * sizeof(uint32_t) * parallel,
                             .messages = workers};
    StepCost most = worker.bytes_sent >= scheduler.bytes_sent ? worker : scheduler;
    most.extra_memory = column_bytes(plan);
    return most;
  }

  double memory_bytes(const Plan& plan) const override {
    return 2.0 * static_cast<double>(plan.architecture.parameter_count) * sizeof(float) +
           column_bytes(plan);
  }

  // The scheduler holds all columns when it looks for conflicts.
  double server_memory_bytes(const Plan& plan) const override {
    const auto parameters = static_cast<double>(plan.architecture.parameter_count);
    const bool looks = config_.schedule == "priority" && config_.conflict < 1;
    return 2 * parameters * sizeof(float) +
           (looks ? parameters * static_cast<double>(plan.samples) * sizeof(double) : 0);
  }

  std::vector<std::string> explain(const Plan& plan) const override {
    const RoundPlan rounds = rounds_of(plan);
    const size_t features = coordinates_of(plan);
    std::vector<std::string> lines = {
        fmt::format("{} features over {} workers, at most {} of them in a round, schedule {}",
                    features, plan.cluster.workers, rounds.parallel(), config_.schedule),
        fmt::format("a pass over all features takes {} rounds; the job has {}",
                    (features + rounds.parallel() - 1) / rounds.parallel(), rounds.total())};
    if (config_.schedule == "priority" && config_.conflict < 1)
      lines.push_back(fmt::format(
          "features of correlation {} or more are not updated in the same round; the scheduler "
          "has all columns to look: {}",
          config_.conflict,
          human_quantity(static_cast<double>(plan.samples * features * sizeof(double)),
                         Unit::kBytes)));
    lines.emplace_back(
        "global_batch and the optimizer do not matter: each round solves for its weights on all "
        "samples");
    return lines;
  }

  void run(Context& context) const override {
    context.node.membership().end_waits_on_any_loss(true);
    if (context.node.endpoint().role(context.node.endpoint().rank()) == kScheduler)
      run_coordinate_scheduler(context, config_);
    else
      CoordinateWorker(context, config_).run();
  }

 private:
  static size_t coordinates_of(const Plan& plan) { return plan.architecture.parameter_count - 1; }
  RoundPlan rounds_of(const Plan& plan) const {
    return {plan.task, coordinates_of(plan), static_cast<size_t>(config_.parallel)};
  }
  static size_t element_bytes(const Plan& plan) {
    return plan.task.deterministic ? sizeof(ExactSum) : sizeof(double);
  }
  Volume volume_of(const Plan& plan) const {
    Group group{.ranks = {}, .index = 0, .racks = {}};
    for (Rank rank = 0; rank < plan.cluster.workers; ++rank) group.ranks.push_back(rank);
    return volume_sent(topology(config_.topology).rounds(group, plan.samples + 2));
  }
  // A worker's columns, the residual and its change.
  double column_bytes(const Plan& plan) const {
    const auto workers = static_cast<size_t>(plan.cluster.workers);
    const size_t own = (coordinates_of(plan) + workers - 1) / workers;
    return static_cast<double>(plan.samples * ((own + 3) * sizeof(double) + element_bytes(plan)));
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
