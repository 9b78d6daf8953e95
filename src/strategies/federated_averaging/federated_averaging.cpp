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

  void validate(const TaskConfig& task, const ClusterConfig& cluster) const override {
    fed::validate(config_, task, cluster);
  }
  void validate_optimizer(const OptimizerConfig& optimizer) const override {
    fed::validate(config_, optimizer);
  }
  void validate_data(const Data& data, const ClusterConfig& cluster) const override {
    validate_client_split(data, config_.split, fed::client_count(config_, cluster));
  }

  Taxonomy taxonomy() const override {
    return {"client-server", "data", "decentralised", "synchronous", "star"};
  }

  // Workers first: rank 0 records what is measured.
  std::vector<std::string> roles(const ClusterConfig& cluster) const override {
    std::vector<std::string> roles = Strategy::roles(cluster);
    roles.push_back(kServer);
    return roles;
  }

  bool goes_on_without(std::string_view role, Rank) const override { return role != kServer; }

  // The server holds two copies of the parameters, the sum of the updates, and updates that arrive.
  // With SCAFFOLD it also holds the control variates of all clients.
  double server_memory_bytes(const Plan& plan) const override {
    const auto vector = static_cast<double>(plan.architecture.parameter_count * sizeof(float));
    const bool scaffold = config_.algorithm == "scaffold";
    const auto clients = static_cast<double>(fed::client_count(config_, plan.cluster));
    return vector * (3 + (scaffold ? 2 : 1) * static_cast<double>(1 + plan.cluster.workers) +
                     (scaffold ? clients + 1 : 0));
  }

  // Of the server in a round: its parameters to every client that it asks.
  StepCost step_cost(const Plan& plan) const override {
    const auto vector = static_cast<double>(plan.architecture.parameter_count * sizeof(float));
    const double vectors = config_.algorithm == "scaffold" ? 2 : 1;
    const auto asked =
        static_cast<double>(fed::asked_clients(config_, fed::client_count(config_, plan.cluster)));
    const auto workers = static_cast<double>(plan.cluster.workers);
    return {.bytes_sent =
                asked * (vectors * vector + sizeof(fed::Order)) + workers * sizeof(fed::Order),
            .messages = asked * (1 + vectors) + workers,
            .extra_memory = 2 * vectors * vector};
  }

  double samples_per_step(const TaskConfig& task, const ClusterConfig& cluster,
                          size_t samples) const override {
    return fed::samples_in_round(config_, task, cluster, samples);
  }

  void run(Context& context) const override {
    if (context.node.endpoint().role(context.node.endpoint().rank()) == kServer)
      fed::Server(context, config_).run();
    else
      fed::Worker(context, config_).run();
  }

 private:
  fed::Config config_;
};

}  // namespace

std::vector<Variant> federated_averaging_variants() {
  return {{"fedavg", {}},
          {"fedprox", {"proximal=0.01"}},
          {"scaffold", {"algorithm=scaffold"}},
          {"fednova", {"algorithm=fednova"}}};
}

std::unique_ptr<Strategy> make_federated_averaging() {
  return std::make_unique<FederatedAveraging>();
}

}  // namespace tutti
