#include "strategies/early_exit/early_exit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "strategies/compute.h"
#include "strategies/early_exit/exit_network.h"
#include "strategies/early_exit/trainer.h"

namespace tutti {
namespace {

constexpr const char* kKept = "exits";  // the attachment of a run
constexpr const char* kDevice = "device";

class EarlyExit : public Strategy {
 public:
  void visit(Visitor& v) override { tutti::visit(v, config_); }

  Taxonomy taxonomy() const override {
    const bool shares = config_.devices > 1 && !sees_parts(config_);
    return {.structure = "client-server",
            .parallelism = shares ? "hybrid" : "model",
            .optimisation = "centralised",
            .timing = Timing::kSynchronous,
            .pattern = "early exits",
            .data = sees_parts(config_) ? "a part of each sample on every device"
                                        : "shares of each batch on devices",
            .stragglers = "everybody waits",
            .communication = "activations and their gradients",
            .computation = "its layers, and an exit"};
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

  Plan plan(const PlanInput& input) const override {
    Plan plan = begin_plan(input, taxonomy(), {.roles = roles(input.cluster)});
    tutti::validate(config_, input.task, input.cluster);
    check(input);
    plan.architecture = std::make_shared<Architecture>(arrange_tiers(config_, input));
    const PlanInput arranged{input.task, input.cluster, input.optimizer, *plan.architecture,
                             input.data};
    const auto detail = std::make_shared<TierPlan>(tiers_for(config_, arranged));
    const Tiers& tiers = detail->tiers;
    const AtLargestBatch largest(arranged);
    for (Rank rank = 0; rank < plan.workers; ++rank) {
      NodePlan& node = plan.nodes[static_cast<size_t>(rank)];
      node.layers = tiers.layers_of(rank);
      node.has_model = !tiers.is_aggregator(rank);
      set_traffic(node, tier_traffic(tiers, arranged, rank));
      node.memory_bytes = tier_memory(tiers, largest.input(), rank);
    }
    plan.reasons = explain_tiers(tiers, config_, arranged);
    plan.role_settings = {{kDevice, "devices"}};
    plan.keeps = kKept;
    plan.facts = {{"tiers", tiers.layers}, {"devices", static_cast<int64_t>(tiers.devices)}};
    plan.detail = detail;
    return plan;
  }

  NodeResult run(Context& context) const override {
    const Tiers& tiers = detail_of<TierPlan>(context.plan).tiers;
    // All nodes use one order of samples. Devices take shares of a batch. The tiers above take all
    // of it, and so do devices that see parts.
    Batches batches = deal_batches(context, sees_parts(config_) ? 1 : config_.devices);
    const auto trainer = std::make_shared<EarlyExitTrainer>(context, tiers, config_);
    context.node.membership().end_waits_on_any_loss(true);
    run_steps(context, batches, *trainer);
    return {.members = {0},  // who has all parameters
            .test = [trainer] { return trainer->test(); },
            .attachment = trainer->gather_parameters()};
  }

  std::unique_ptr<Answerer> answerer(const PlanInput& input, Model& model,
                                     const LoadAttachment& load) const override {
    const Attachment attachment = load(kKept);
    const KeptExits kept = read_exits(attachment);
    const auto count = static_cast<size_t>(tiers_of(config_, input.cluster)) - 1;
    if (kept.cuts.size() != count || (!config_.cuts.empty() && kept.cuts != config_.cuts))
      throw DataError(
          fmt::format("exits.safetensors: its cuts [{}] are not those of the run's "
                      "job.toml; put the file of this run back, or train it again",
                      fmt::join(kept.cuts, ", ")));
    EarlyExitConfig config = config_;
    config.cuts = kept.cuts;  // the run chose them if the settings left them open
    return std::make_unique<ExitNetwork>(model, tiers_for(config, input), attachment,
                                         kept.thresholds);
  }

 private:
  struct TierPlan : PlanDetail {
    explicit TierPlan(Tiers placed) : tiers(std::move(placed)) {}
    Tiers tiers;
  };

  static Tiers tiers_for(const EarlyExitConfig& config, const PlanInput& input) {
    return place_tiers(config, input);
  }

  void check(const PlanInput& input) const {
    if (input.optimizer.clip_norm > 0)
      throw ConfigError("optimizer.clip_norm",
                        fmt::format("optimizer.clip_norm = {} needs the norm of the whole "
                                    "gradient, of which a tier of strategy.kind = \"early_exit\" "
                                    "has a part; set it to 0",
                                    input.optimizer.clip_norm));
    if (config_.thresholds.empty() && input.data.counted && input.data.validation == 0)
      throw ConfigError("strategy.thresholds",
                        "strategy.thresholds is empty, so thresholds are chosen on validation, but "
                        "there are no validation samples; raise task.data.validation, or give "
                        "thresholds");
  }

  std::vector<std::string> roles(const ClusterConfig& cluster) const {
    std::vector<std::string> roles(static_cast<size_t>(cluster.workers), "edge");
    std::fill_n(roles.begin(), std::min<int64_t>(config_.devices, cluster.workers), kDevice);
    if (sees_parts(config_) && config_.devices < cluster.workers)
      roles[static_cast<size_t>(config_.devices)] = "aggregator";
    roles.back() = "cloud";
    return roles;
  }

  EarlyExitConfig config_;
};

}  // namespace

std::vector<Variant> early_exit_variants() { return {{"early-exit", {}}}; }

std::unique_ptr<Strategy> make_early_exit() { return std::make_unique<EarlyExit>(); }

}  // namespace tutti
