#include "strategies/parameter_server/parameter_server.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "fabric/capabilities.h"
#include "strategies/parameter_layout.h"
#include "strategies/parameter_server/costs.h"
#include "strategies/parameter_server/layout.h"
#include "strategies/parameter_server/planner.h"
#include "strategies/parameter_server/row_worker.h"
#include "strategies/parameter_server/run_settings.h"
#include "strategies/parameter_server/server_node.h"
#include "strategies/parameter_server/shared_memory.h"
#include "strategies/parameter_server/snapshot.h"
#include "strategies/parameter_server/worker.h"
#include "strategies/synchronous.h"

namespace tutti {
namespace {

namespace ps = parameter_server;

constexpr const char* kServer = "server";

class ParameterServer : public Strategy {
 public:
  void visit(Visitor& visitor) override { ps::visit(visitor, config_); }

  Taxonomy taxonomy() const override {
    const bool backup = config_.consistency == ps::ConsistencyKind::kBackup;
    const bool asp = config_.consistency == ps::ConsistencyKind::kAsp;
    const bool bsp = config_.consistency == ps::ConsistencyKind::kBsp;
    return {.structure = "client-server",
            .parallelism = "data",
            .optimisation = "centralised",
            .timing = bsp || backup ? Timing::kSynchronous
                      : asp         ? Timing::kAsynchronous
                                    : Timing::kBounded,
            .pattern = "push and pull",
            .data = "shares of each batch",
            .stragglers = bsp      ? "everybody waits"
                          : backup ? "the slowest are left out of a step"
                          : asp    ? "nobody waits; its gradients are old"
                                   : "the others wait at a bound",
            .communication = "gradients to servers, parameters back",
            .computation = "a share of the batch"};
  }

  Plan plan(const PlanInput& input) const override {
    if (config_.automatic) return best_plan(input);
    Plan plan = begin_plan(input, taxonomy(),
                           {.roles = workers_and(input.cluster, kServer, config_.servers)});
    validate(input);
    if (input.architecture.row_width == 0 && config_.consistency == ps::ConsistencyKind::kBsp &&
        config_.pull_every == 1)
      plan.equivalence = synchronous_class(input.task);
    plan.role_settings = {{kServer, "servers"}};
    plan.recurs_every = config_.pull_every;
    plan.rows = RowUse::kSpread;
    plan.resumed = resumed(input);
    plan.in_words = words(input.cluster);
    plan.reasons = explain(input);
    const auto detail = std::make_shared<ps::ServerDetail>();
    detail->shards = shards(input);
    const AtLargestBatch largest(input);
    const auto [worker, server] = ps::step_costs(input, config_, detail->shards);
    for (NodePlan& node : plan.nodes) {
      const bool serves = node.role == kServer;
      set_traffic(node, serves ? server : worker);
      if (serves) set_no_model(node);  // it starts from the initial values of its shards
      node.may_be_lost = !serves || config_.replicas > 0;
      node.memory_bytes = (serves ? ps::server_memory_bytes : ps::worker_memory_bytes)(
          largest.input(), config_, detail->shards);
    }
    ps::plan_shared_memory(plan, input, config_, detail->shards);
    plan.facts = {{"shards", detail->shards}};
    plan.detail = detail;
    return plan;
  }

  NodeResult run(Context& context) const override {
    if (context.node.endpoint().role(context.node.endpoint().rank()) == kServer)
      ps::ServerNode(context, config_).run();
    else if (context.model.architecture().row_width > 0)
      ps::RowWorker(context, config_).run();
    else
      ps::Worker(context, config_).run();
    return {context.members};
  }

 private:
  std::vector<Range> shards(const PlanInput& input) const {
    return ps::make_shards(input.architecture, config_, input.optimizer);
  }

  void validate(const PlanInput& input) const {
    ps::validate(config_, input.task, input.cluster);
    ps::validate(config_, input.optimizer);
  }

  // The plan with the servers that take least time.
  Plan best_plan(const PlanInput& input) const {
    begin_plan(input, taxonomy(), {.roles = workers_and(input.cluster, kServer, config_.servers)});
    validate(input);
    const std::vector<ps::ServerPlan> plans = plans_that_fit(input);
    ParameterServer settled(*this);
    ClusterConfig cluster = input.cluster;
    ps::take_plan(plans.front(), settled.config_, cluster);
    Plan plan =
        settled.plan({input.task, cluster, input.optimizer, input.architecture, input.data});
    std::vector<std::string> reasons = explain_plans(plans, input);
    reasons.insert(reasons.end(), plan.reasons.begin(), plan.reasons.end());
    plan.reasons = std::move(reasons);
    plan.decided = {fmt::format("servers={}", settled.config_.servers)};
    return plan;
  }

  // Explains which servers may leave and join, and why a request is not fulfilled.
  std::vector<std::string> explain(const PlanInput& input) const {
    if (config_.replicas == 0)
      return {config_.snapshot_every > 0
                  ? "a lost server ends the run, which can go on from its snapshots; no server can "
                    "join, since nobody could give it a state: set strategy.replicas"
                  : "a lost server ends the run, and none can join: set strategy.replicas"};
    std::vector<std::string> lines = {
        fmt::format("any {} of the {} servers may be lost at once; one that comes late or back "
                    "gets its shards; more cannot join, as shards are cut for these",
                    config_.replicas, config_.servers)};
    if (config_.pull == ps::PullKind::kLayers && input.architecture.row_width == 0)
      lines.emplace_back(
          "parameters are pulled whole, not layer by layer: a server that takes over may answer "
          "with newer ones, which must not mix");
    return lines;
  }

  std::string words(const ClusterConfig& cluster) const {
    std::string words = ps::in_words(config_, cluster);
    if (capabilities_of(cluster).declared_hosts && !cluster.colocated)  // they may replace workers
      words += fmt::format(", {} worker{}", cluster.workers, cluster.workers == 1 ? "" : "s");
    return words;
  }

  Resumed resumed(const PlanInput& input) const {
    if (config_.resume.empty() || input.cluster.cost_only || !input.data.counted) return {};
    const Log unused;  // the servers choose again, and log why
    const int64_t version =
        ps::newest_snapshot(config_.resume, static_cast<int>(ps::shards_of(config_)), unused);
    const std::string path = ps::snapshot_path(config_.resume, 0, version);
    const ps::Snapshot snapshot = ps::read_snapshot(path);
    const std::string changed = ps::difference(
        ps::settings_in(snapshot.settings),
        ps::run_settings(input.task, input.optimizer, input.cluster, config_, input.data));
    if (!changed.empty())
      throw DataError(
          fmt::format("{}: is of a run with other settings: {}; go on with those of that run "
                      "({}/job.toml has them), or begin anew without strategy.resume",
                      path, changed, config_.resume));
    return {snapshot.info.steps, snapshot.info.samples};
  }

  // Fewer workers have larger parts of a batch, so a plan may need too much memory. If none fits,
  // all are returned, and the job is refused later.
  std::vector<ps::ServerPlan> plans_that_fit(const PlanInput& input) const {
    std::vector<ps::ServerPlan> all = ps::server_plans(config_, input), fitting;
    for (const ps::ServerPlan& each : all) {
      ParameterServer settled(*this);
      ClusterConfig cluster = input.cluster;
      ps::take_plan(each, settled.config_, cluster);
      const AtLargestBatch largest(
          {input.task, cluster, input.optimizer, input.architecture, input.data});
      const double bytes = ps::worker_memory_bytes(largest.input(), settled.config_,
                                                   settled.shards(largest.input()));
      bool fits = true;
      for (int64_t worker = 0; worker < cluster.workers && capabilities_of(cluster).declared_hosts;
           ++worker)
        fits = fits && bytes <= memory_of(cluster, worker);
      if (fits) fitting.push_back(each);
    }
    return fitting.empty() ? all : fitting;
  }

  std::vector<std::string> explain_plans(const std::vector<ps::ServerPlan>& plans,
                                         const PlanInput& input) const {
    constexpr size_t kMostShown = 6;
    const auto named = [&](const ps::ServerPlan& each) {
      ps::Config config = config_;
      ClusterConfig cluster = input.cluster;
      ps::take_plan(each, config, cluster);
      return fmt::format("{}, {} worker{}", ps::in_words(config, cluster), each.workers,
                         each.workers == 1 ? "" : "s");
    };
    if (!capabilities_of(input.cluster).declared_hosts)
      return {
          fmt::format("{}: all nodes send through its memory, and more servers would only "
                      "share its cores",
                      named(plans.front()))};
    std::vector<std::string> lines = {
        fmt::format("{}: about {:.3g} ms a step", named(plans.front()), 1e3 * plans[0].step_s)};
    for (size_t i = 1; i < plans.size() && i < kMostShown; ++i)
      lines.push_back(
          fmt::format("considered {}: {:.3g} ms a step", named(plans[i]), 1e3 * plans[i].step_s));
    return lines;
  }

  ps::Config config_;
};

}  // namespace

std::vector<Variant> parameter_server_variants() {
  // Each variant has the best plan for the cluster. The one with one server is there because people
  // ask about it.
  return {{"ps-bsp", {"consistency=bsp", "servers=auto"}},
          {"ps-bsp-1", {"consistency=bsp", "servers=1"}},
          {"ps-ssp3", {"consistency=ssp", "staleness=3", "servers=auto"}},
          {"ps-adaptive", {"consistency=adaptive", "servers=auto"}},
          {"ps-waiting", {"consistency=waiting", "servers=auto"}},
          {"ps-backup1", {"consistency=backup", "backup=1", "servers=auto"}},
          {"ps-asp", {"consistency=asp", "servers=auto"}}};
}

std::unique_ptr<Strategy> make_parameter_server() { return std::make_unique<ParameterServer>(); }

}  // namespace tutti
