#include "strategies/parameter_server/parameter_server.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "strategies/parameter_layout.h"
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

  void validate(const TaskConfig& task, const ClusterConfig& cluster) const override {
    ps::validate(config_, task, cluster);
  }
  void validate_optimizer(const OptimizerConfig& optimizer) const override {
    ps::validate(config_, optimizer);
  }

  Taxonomy taxonomy() const override {
    const bool collects = config_.consistency == "bsp" || config_.consistency == "backup";
    return {"client-server", "data", "centralised",
            collects                       ? "synchronous"
            : config_.consistency == "asp" ? "asynchronous"
                                           : "bounded",
            "push and pull"};
  }

  // Explains how many servers there are and why, which of them may leave and join, and why a
  // request is not fulfilled.
  std::vector<std::string> explain(const Plan& plan) const override {
    std::vector<std::string> lines;
    int64_t servers = config_.servers;
    if (config_.automatic) {
      const std::vector<ps::ServerPlan> plans = plans_that_fit(plan);
      servers = plans.front().servers;
      lines = explain_plans(plans, plan);
    }
    if (config_.replicas == 0) {
      lines.emplace_back(
          config_.snapshot_every > 0
              ? "a lost server ends the run, which can go on from its snapshots; no server can "
                "join, since nobody could give it a state: set strategy.replicas"
              : "a lost server ends the run, and none can join: set strategy.replicas");
      return lines;
    }
    lines.push_back(
        fmt::format("any {} of the {} servers may be lost at once; one that comes late or back "
                    "gets its shards; more cannot join, as shards are cut for these",
                    config_.replicas, servers));
    if (config_.pull == "layers" && plan.architecture.row_width == 0)
      lines.emplace_back(
          "parameters are pulled whole, not layer by layer: a server that takes over may answer "
          "with newer ones, which must not mix");
    return lines;
  }

  std::string plan_in_words(const Plan& plan) const override {
    std::string words = ps::in_words(config_, plan.cluster);
    if (plan.cluster.fabric == "virtual" && !plan.cluster.colocated)  // servers may replace workers
      words +=
          fmt::format(", {} worker{}", plan.cluster.workers, plan.cluster.workers == 1 ? "" : "s");
    return words;
  }

  void settle(const Plan& plan, ClusterConfig& cluster) override {
    if (config_.automatic) ps::take_plan(plans_that_fit(plan).front(), config_, cluster);
  }

  // Workers first: rank 0 records what is measured.
  std::vector<std::string> roles(const ClusterConfig& cluster) const override {
    std::vector<std::string> roles = Strategy::roles(cluster);
    roles.insert(roles.end(), static_cast<size_t>(config_.servers), kServer);
    return roles;
  }

  bool goes_on_without(std::string_view role, Rank) const override {
    return role != kServer || config_.replicas > 0;
  }
  bool moves_rows() const override { return true; }
  bool spreads_rows() const override { return true; }

  std::string equivalence(const TaskConfig& task) const override {
    // Of a sparse model it depends on the optimizer whether rows that are not touched rest.
    if (is_sparse(task.model)) return "";
    return config_.consistency == "bsp" && config_.pull_every == 1 ? synchronous_class(task) : "";
  }

  // Of a sparse model a worker holds the rows of its batch, and in the end all that are few.
  double memory_bytes(const Plan& plan) const override {
    if (plan.architecture.row_width == 0) return Strategy::memory_bytes(plan);
    const size_t count = plan.architecture.parameter_count;
    return ps::touched_rows(plan) * static_cast<double>(plan.architecture.row_width) * 2 *
               sizeof(float) +
           (count <= kMostFlat ? 2.0 * static_cast<double>(count * sizeof(float)) : 0) +
           step_cost(plan).extra_memory;
  }

  // A server holds the initial parameters of all shards; for its own shards the parameters, the sum
  // of the gradients and the state of the optimizer; and what each worker pushes.
  double server_memory_bytes(const Plan& plan) const override {
    if (plan.architecture.row_width > 0) return memory_bytes(plan);
    const double element = plan.task.deterministic ? sizeof(ExactSum) : sizeof(float);
    const auto count = static_cast<double>(plan.architecture.parameter_count);
    const double share = count / static_cast<double>(config_.servers);
    const double state = optimizer_cost(plan.optimizer, layout_of(plan.architecture)).values;
    return count * sizeof(float) +
           static_cast<double>(1 + config_.replicas) * share *
               (sizeof(float) * (1 + state / count) + element) +
           static_cast<double>(plan.cluster.workers) * share * element;
  }

  StepCost step_cost(const Plan& plan) const override {
    if (plan.architecture.row_width > 0) return ps::row_step_cost(plan, config_);
    const double element = plan.task.deterministic ? sizeof(ExactSum) : sizeof(float);
    const auto count = static_cast<double>(plan.architecture.parameter_count);
    const auto workers = static_cast<double>(plan.cluster.workers);
    const double pulls = 1.0 / static_cast<double>(config_.pull_every);
    StepCost worker, server;
    size_t largest = 0, answers = 1;  // messages with parameters
    for (const Range shard : ps::make_shards(plan.architecture, config_, plan.optimizer)) {
      const double pieces =
          plan.task.deterministic || config_.pull_every > 1
              ? 1.0
              : static_cast<double>(ps::pieces_of(plan.architecture, shard).size());
      worker.bytes_sent +=
          pulls * (static_cast<double>(shard.size()) * element + sizeof(ps::Request));
      worker.messages += pulls * (1 + pieces);
      largest = std::max(largest, shard.size());
      if (ps::pulls_layers(config_))
        answers = std::max(answers, ps::forward_pieces_of(plan.architecture, shard).size());
    }
    server.bytes_sent =
        pulls * workers * (static_cast<double>(largest) * sizeof(float) + sizeof(ps::Reply));
    server.messages = pulls * workers * static_cast<double>(1 + answers);
    // Every server passes on the updates of as many shards: one a step, or one for each push.
    const bool collects = config_.consistency == "bsp" || config_.consistency == "backup";
    const double updates = collects ? 1 : workers;
    const auto copies = static_cast<double>(config_.replicas);
    server.bytes_sent +=
        pulls * copies *
        (updates * static_cast<double>(largest) * sizeof(float) + 2 * workers * sizeof(ps::Entry));
    server.messages += pulls * copies * (2 * workers + updates);
    StepCost most = server.bytes_sent > worker.bytes_sent ? server : worker;
    // The parameters that come in, and what is summed up by the worker itself.
    most.extra_memory = count * sizeof(float);
    if (plan.task.deterministic) most.extra_memory += count * sizeof(ExactSum);
    if (config_.pull_every > 1) {  // the worker's own steps need memory too
      const Layout all = layout_of(plan.architecture, {0, plan.architecture.parameter_count});
      most.extra_memory += (count + optimizer_cost(plan.optimizer, all).values) * sizeof(float);
    }
    most.extra_memory +=
        copies * static_cast<double>(largest) * sizeof(float);  // what is passed on
    return most;
  }

  Resumed resumed(const Plan& plan, const Data& data) const override {
    if (config_.resume.empty() || plan.cluster.cost_only) return {};
    const Log unused;  // the servers choose again, and log why
    const int64_t version =
        ps::newest_snapshot(config_.resume, static_cast<int>(ps::shards_of(config_)), unused);
    const std::string path = ps::snapshot_path(config_.resume, 0, version);
    const ps::Snapshot snapshot = ps::read_snapshot(path);
    const std::string changed =
        ps::difference(ps::settings_in(snapshot.settings),
                       ps::run_settings(plan.task, plan.optimizer, plan.cluster, config_, data));
    if (!changed.empty())
      throw DataError(
          fmt::format("{}: is of a run with other settings: {}; go on with those of that run "
                      "({}/job.toml has them), or begin anew without strategy.resume",
                      path, changed, config_.resume));
    return {snapshot.info.steps, snapshot.info.samples};
  }

  SharedMemory share(Node& node, const Plan& plan, Log& log) const override {
    return ps::open_shared_memory(node, plan, config_, log);
  }

  void run(Context& context) const override {
    if (context.node.endpoint().role(context.node.endpoint().rank()) == kServer)
      ps::ServerNode(context, config_).run();
    else if (context.model.architecture().row_width > 0)
      ps::RowWorker(context, config_).run();
    else
      ps::Worker(context, config_).run();
  }

 private:
  // Fewer workers have larger parts of a batch, so a plan may need too much memory. If none fits,
  // all are returned, and the job is refused later.
  std::vector<ps::ServerPlan> plans_that_fit(const Plan& plan) const {
    std::vector<ps::ServerPlan> all = ps::server_plans(config_, plan), fitting;
    for (const ps::ServerPlan& each : all) {
      ParameterServer settled(*this);
      ClusterConfig cluster = plan.cluster;
      ps::take_plan(each, settled.config_, cluster);
      const double bytes = settled.memory_bytes(
          {plan.task, cluster, plan.optimizer, plan.architecture, plan.samples});
      bool fits = true;
      for (int64_t worker = 0; worker < cluster.workers && cluster.fabric == "virtual"; ++worker)
        fits = fits && bytes <= memory_of(cluster, worker);
      if (fits) fitting.push_back(each);
    }
    return fitting.empty() ? all : fitting;
  }

  std::vector<std::string> explain_plans(const std::vector<ps::ServerPlan>& plans,
                                         const Plan& plan) const {
    constexpr size_t kMostShown = 6;
    const auto named = [&](const ps::ServerPlan& each) {
      ps::Config config = config_;
      ClusterConfig cluster = plan.cluster;
      ps::take_plan(each, config, cluster);
      return fmt::format("{}, {} worker{}", ps::in_words(config, cluster), each.workers,
                         each.workers == 1 ? "" : "s");
    };
    if (plan.cluster.fabric != "virtual")
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
