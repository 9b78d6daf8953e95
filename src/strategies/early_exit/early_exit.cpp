#include "strategies/early_exit/early_exit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "strategies/early_exit/exit_network.h"
#include "strategies/early_exit/trainer.h"

namespace tutti {
namespace {

class EarlyExit : public Strategy {
 public:
  void visit(Visitor& v) override { tutti::visit(v, config_); }

  void validate(const TaskConfig& task, const ClusterConfig& cluster) const override {
    tutti::validate(config_, task, cluster);
  }

  void validate_optimizer(const OptimizerConfig& optimizer) const override {
    if (optimizer.clip_norm > 0)
      throw ConfigError("optimizer.clip_norm",
                        fmt::format("optimizer.clip_norm = {} needs the norm of the whole "
                                    "gradient, of which a tier of strategy.kind = \"early_exit\" "
                                    "has a part; set it to 0",
                                    optimizer.clip_norm));
  }

  void validate_data(const Data& data, const ClusterConfig&) const override {
    if (config_.thresholds.empty() && data.splits.validation.empty())
      throw ConfigError("strategy.thresholds",
                        "strategy.thresholds is empty, so thresholds are chosen on validation, but "
                        "there are no validation samples; raise task.data.validation, or give "
                        "thresholds");
  }

  Architecture arrange(const Plan& plan) const override { return arrange_tiers(config_, plan); }

  void validate_plan(const Plan& plan) const override { place_tiers(config_, plan); }

  std::vector<std::string> explain(const Plan& plan) const override {
    return explain_tiers(config_, plan);
  }

  Taxonomy taxonomy() const override {
    const bool shares = config_.devices > 1 && !sees_parts(config_);
    return {"client-server", shares ? "hybrid" : "model", "centralised", "synchronous",
            "early exits"};
  }

  std::vector<std::string> roles(const ClusterConfig& cluster) const override {
    std::vector<std::string> roles(static_cast<size_t>(cluster.workers), "edge");
    std::fill_n(roles.begin(), std::min<int64_t>(config_.devices, cluster.workers), "device");
    if (sees_parts(config_) && config_.devices < cluster.workers)
      roles[static_cast<size_t>(config_.devices)] = "aggregator";
    roles.back() = "cloud";
    return roles;
  }

  // Of a cluster that has more nodes than device, edge and cloud need, device and cloud: every
  // model that can be cut allows for them.
  void fit(ClusterConfig& cluster) const override {
    int64_t tiers = tiers_of(config_, cluster);
    if (!config_.cuts.empty())
      tiers = static_cast<int64_t>(config_.cuts.size()) + 1;
    else if (!config_.exit_weights.empty())
      tiers = static_cast<int64_t>(config_.exit_weights.size());
    else if (!config_.thresholds.empty())
      tiers = static_cast<int64_t>(config_.thresholds.size()) + 1;
    else if (tiers > 3)
      tiers = 2;
    shrink_cluster(cluster, std::min(cluster.workers, local_nodes(config_) + tiers - 1));
  }

  std::vector<Range> layers_of(const Plan& plan, Rank worker) const override {
    return place_tiers(config_, plan).layers_of(worker);
  }

  StepCost step_cost(const Plan& plan) const override {
    const Tiers tiers = place_tiers(config_, plan);
    StepCost most;
    for (Rank rank = 0; rank < plan.cluster.workers; ++rank) {
      const StepCost cost = tier_traffic(tiers, plan, rank);
      if (cost.bytes_sent >= most.bytes_sent) most = cost;
    }
    return most;
  }

  double memory_bytes(const Plan& plan) const override {
    const std::vector<double> bytes = memory_by_worker(plan);
    return *std::max_element(bytes.begin(), bytes.end());
  }
  std::vector<double> memory_by_worker(const Plan& plan) const override {
    const Tiers tiers = place_tiers(config_, plan);
    std::vector<double> bytes;
    for (Rank rank = 0; rank < plan.cluster.workers; ++rank)
      bytes.push_back(tier_memory(tiers, plan, rank));
    return bytes;
  }

  std::string keeps() const override { return "exits"; }

  std::unique_ptr<Answerer> answerer(const Plan& plan, Model& model,
                                     const Attachment& attachment) const override {
    const KeptExits kept = read_exits(attachment);
    const auto count = static_cast<size_t>(tiers_of(config_, plan.cluster)) - 1;
    if (kept.cuts.size() != count || (!config_.cuts.empty() && kept.cuts != config_.cuts))
      throw DataError(
          fmt::format("exits.safetensors: its cuts [{}] are not those of the run's "
                      "job.toml; put the file of this run back, or train it again",
                      fmt::join(kept.cuts, ", ")));
    EarlyExitConfig config = config_;
    config.cuts = kept.cuts;  // the run chose them if the settings left them open
    return std::make_unique<ExitNetwork>(model, place_tiers(config, plan), attachment,
                                         kept.thresholds);
  }

  void run(Context& context) const override {
    const Tiers tiers = place_tiers(
        config_, {context.task, context.cluster, context.optimizer, context.model.architecture()});
    // All nodes use one order of samples. Devices take shares of a batch. The tiers above take all
    // of it, and so do devices that see parts.
    Batches batches(context.data.splits.train, context.task.partition,
                    sees_parts(config_) ? 1 : config_.devices, context.task.seed,
                    !context.node.clock().cost_only());
    const auto trainer = std::make_shared<EarlyExitTrainer>(context, tiers, config_);
    context.node.membership().end_waits_on_any_loss(true);
    run_steps(context, batches, *trainer);
    trainer->gather_parameters();
    context.members = {0};  // who has all parameters
    context.test = [trainer] { return trainer->test(); };
  }

 private:
  EarlyExitConfig config_;
};

}  // namespace

std::vector<Variant> early_exit_variants() { return {{"early-exit", {}}}; }

std::unique_ptr<Strategy> make_early_exit() { return std::make_unique<EarlyExit>(); }

}  // namespace tutti
