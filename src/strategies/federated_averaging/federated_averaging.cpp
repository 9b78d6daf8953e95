#include "strategies/federated_averaging/federated_averaging.h"

#include "strategies/federated_averaging/server.h"
#include "strategies/federated_averaging/worker.h"

namespace tutti {
namespace {

namespace fed = federated_averaging;

constexpr const char* kServer = "server";

class FederatedAveraging : public Strategy {
 public:
  void visit(Visitor& visitor) override { fed::visit(visitor, config_); }

  Taxonomy taxonomy() const override {
    return {.structure = "client-server",
            .parallelism = "data",
            .optimisation = "decentralised",
            .timing = Timing::kSynchronous,
            .pattern = "star",
            .data = "each client has samples of its own",
            .stragglers = fed::closes_early(config_) ? "the last clients of a round are left out"
                                                     : "a round waits for its clients",
            .communication = "parameters of some clients in a round",
            .computation = "local steps of some clients"};
  }

  // The server keeps the record: it deals the work and measures, and without it there is no run.
  Plan plan(const PlanInput& input) const override {
    Plan plan = begin_plan(input, taxonomy(), {.roles = workers_and(input.cluster, kServer)});
    fed::validate(config_, input.task, input.cluster);
    fed::validate(config_, input.optimizer);
    const int64_t clients = fed::client_count(config_, input.cluster);
    validate_client_split(input.data, config_.split, clients);
    const auto vector = static_cast<double>(input.architecture.parameter_count * sizeof(float));
    const bool scaffold = fed::has_controls(config_);
    const double vectors = scaffold ? 2 : 1;
    const auto asked = static_cast<double>(fed::asked_clients(config_, clients));
    const auto workers = static_cast<double>(input.cluster.workers);
    // A worker sends a report and the update of each client in its share of those that are asked.
    set_workers(plan, input,
                {.bytes_sent = asked / workers * (vectors * vector + sizeof(fed::Report)),
                 .messages = asked / workers * (1 + vectors),
                 .extra_memory = 2 * vectors * vector});
    for (NodePlan& node : plan.nodes) node.may_be_lost = node.role != kServer;
    // The server sends its parameters to every client that it asks.
    NodePlan& server = plan.nodes.back();
    set_no_model(server);  // it starts from the initial values of all parameters
    set_traffic(server, {.bytes_sent = asked * (vectors * vector + sizeof(fed::Order)),
                         .messages = asked * (1 + vectors)});
    plan.recorder = static_cast<Rank>(plan.workers);
    // It holds two versions of the parameters, the sum of the updates, and updates that arrive.
    // With SCAFFOLD it also holds the control variates of all clients.
    server.memory_bytes =
        vector * (3 + vectors * (1 + workers) + (scaffold ? static_cast<double>(clients) + 1 : 0));
    count_steps(plan, input,
                fed::samples_in_round(config_, input.task, input.cluster, input.data.train));
    return plan;
  }

  NodeResult run(Context& context) const override {
    if (context.node.endpoint().role(context.node.endpoint().rank()) == kServer)
      fed::Server(context, config_).run();
    else
      fed::Worker(context, config_).run();
    return {context.members};
  }

 private:
  fed::Config config_;
};

}  // namespace

std::vector<Variant> federated_averaging_variants() {
  return {{"fedavg", {"algorithm=fedavg", "proximal=0"}},
          {"fedprox", {"algorithm=fedavg", "proximal=0.01"}},
          {"scaffold", {"algorithm=scaffold", "proximal=0"}},
          {"fednova", {"algorithm=fednova", "proximal=0"}}};
}

std::unique_ptr<Strategy> make_federated_averaging() {
  return std::make_unique<FederatedAveraging>();
}

}  // namespace tutti
