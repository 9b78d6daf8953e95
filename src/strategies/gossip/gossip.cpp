#include "strategies/gossip/gossip.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "strategies/gossip/graph.h"
#include "strategies/local_training.h"
#include "strategies/pairwise.h"
#include "strategies/synchronous.h"

namespace tutti {
namespace {

class Gossip : public Strategy {
 public:
  void visit(Visitor& v) override {
    std::vector<std::string_view> graphs;
    for (const GraphEntry& entry : graph_catalog()) graphs.push_back(entry.name);
    v.choice("graph", config_.graph, graphs, "who averages with whom");
    choice(v, "mode", config_.mode, "all in rounds, or in pairs without waiting for each other");
    if (!in_lockstep()) return;
    choice(v, "exchange", config_.exchange, "what is averaged");
    if (config_.exchange == GossipExchange::kParameters)
      choice(v, "order", config_.order,
             "step, then average; or average while the gradient is computed, then step");
  }

  Taxonomy taxonomy() const override {
    const bool sync = in_lockstep();
    return {.structure = "peer-to-peer",
            .parallelism = "data",
            .optimisation = "decentralised",
            .timing = sync ? Timing::kSynchronous : Timing::kAsynchronous,
            .pattern = graph(config_.graph).name,
            .data = "shares of each batch",
            .stragglers = sync ? "neighbours wait" : "nobody waits",
            .communication = "parameters or gradients to neighbours",
            .computation = "a share of the batch"};
  }

  Plan plan(const PlanInput& input) const override {
    Plan plan = begin_plan(input, taxonomy());
    validate(input.task, input.cluster);
    // Averaging gradients over all is synchronous for every optimizer; averaging parameters only
    // for those that are linear in the gradient.
    if (in_lockstep() && graph(config_.graph).complete &&
        config_.exchange == GossipExchange::kGradients)
      plan.equivalence = synchronous_class(input.task);
    set_workers(plan, input, step_cost(input));
    if (in_lockstep()) return plan;
    for (NodePlan& node : plan.nodes) node.may_be_lost = true;
    plan.reasons.emplace_back(
        "any worker may be lost, also the one that keeps the record: the next one goes on with it");
    return plan;
  }

  NodeResult run(Context& context) const override {
    const Rank me = context.node.endpoint().rank();
    if (me == 0) note_graph(context);
    if (in_lockstep()) {
      gossip_in_lockstep(context, config_);
      return {context.members};
    }
    std::vector<Rank> left = gossip_freely(context, config_);
    if (me > 0 && !left.empty() && me == left.front()) note_graph(context);
    return {std::move(left)};
  }

 private:
  bool in_lockstep() const { return config_.mode == Pace::kLockstep; }

  void note_graph(Context& context) const {
    context.recorder.figure(
        "spectral_gap",
        spectral_gap(graph(config_.graph), static_cast<size_t>(context.cluster.workers)));
  }

  void validate(const TaskConfig& task, const ClusterConfig& cluster) const {
    refuse_deterministic(task, "gossip");
    if (graph(config_.graph).rectangle && torus_rows(static_cast<size_t>(cluster.workers)) < 2)
      throw ConfigError("strategy.graph",
                        fmt::format("strategy.graph = \"{}\" needs workers that make a "
                                    "rectangle, but cluster.workers = {} has no divisor; take "
                                    "another number of workers, or another graph",
                                    config_.graph, cluster.workers));
    if (!in_lockstep()) refuse_cost_only(cluster, "strategy.mode = \"async\"");
  }

  StepCost step_cost(const PlanInput& input) const {
    const auto bytes = static_cast<double>(input.architecture.parameter_count * sizeof(float));
    if (!in_lockstep())  // a request and an answer
      return {.bytes_sent = 2 * bytes, .messages = 2, .extra_memory = 8 * bytes};
    const auto workers = static_cast<size_t>(input.cluster.workers);
    size_t most = 0;
    const GraphEntry& entry = graph(config_.graph);
    for (size_t round = 0; round < std::max<size_t>(1, entry.period(workers)); ++round)
      most = std::max(most, entry.mixing(workers, 0, round, input.task.seed).to.size());
    const auto peers = static_cast<double>(most);
    return {.bytes_sent = peers * bytes, .messages = peers, .extra_memory = (peers + 1) * bytes};
  }

  GossipConfig config_;
};

}  // namespace

std::vector<Variant> gossip_variants() {
  return {{"gossip-ring", {"graph=ring", "mode=sync"}},
          {"gossip-exponential", {"graph=one_peer_exponential", "mode=sync"}},
          {"gossip-async", {"graph=complete", "mode=async"}}};
}

std::unique_ptr<Strategy> make_gossip() { return std::make_unique<Gossip>(); }

}  // namespace tutti
