#include <fmt/format.h>

#include <algorithm>

#include "core/bytes.h"
#include "core/error.h"
#include "models/stage.h"
#include "strategies/allreduce.h"
#include "strategies/early_exit/early_exit.h"
#include "strategies/elastic_averaging.h"
#include "strategies/federated_averaging/federated_averaging.h"
#include "strategies/gossip/gossip.h"
#include "strategies/hogwild.h"
#include "strategies/hybrid.h"
#include "strategies/local_sgd.h"
#include "strategies/model_averaging.h"
#include "strategies/parameter_layout.h"
#include "strategies/parameter_server/parameter_server.h"
#include "strategies/pipeline/pipeline.h"
#include "strategies/scheduled/scheduled.h"
#include "strategies/solo.h"
#include "strategies/strategy.h"
#include "strategies/tensor.h"

namespace tutti {

const std::vector<StrategyEntry>& strategy_catalog() {
  static const std::vector<StrategyEntry> entries = {
      {"solo", "one worker alone: the baseline", make_solo, solo_variants},
      {"allreduce", "every worker sums all gradients and takes the same step", make_allreduce,
       allreduce_variants},
      {"early_exit", "layers over device, edge and cloud; certain samples leave at the first exit",
       make_early_exit, early_exit_variants},
      {"elastic_averaging", "workers and a common centre attract each other",
       make_elastic_averaging, elastic_averaging_variants},
      {"federated_averaging", "a server averages what some of many clients learn on their own data",
       make_federated_averaging, federated_averaging_variants},
      {"gossip", "workers average with their neighbours on a graph", make_gossip, gossip_variants},
      {"hogwild", "all workers of a host update shared parameters without locks", make_hogwild,
       hogwild_variants},
      {"hybrid", "copies of a model, each cut into stages, each stage split into shards",
       make_hybrid, hybrid_variants},
      {"local_sgd", "workers take steps on their own and average every so often", make_local_sgd,
       local_sgd_variants},
      {"model_averaging", "workers train in isolation and a master merges their models",
       make_model_averaging, model_averaging_variants},
      {"parameter_server", "servers hold the parameters; workers push gradients and pull them",
       make_parameter_server, parameter_server_variants},
      {"pipeline", "the layers over nodes; batches go through in parts, one behind the other",
       make_pipeline, pipeline_variants},
      {"scheduled", "coordinate descent; a scheduler picks weights that do not conflict",
       make_scheduled, scheduled_variants},
      {"tensor", "every layer over all nodes, which sum within each block", make_tensor,
       tensor_variants},
  };
  return entries;
}

std::unique_ptr<Strategy> make_strategy(std::string_view kind) {
  for (const StrategyEntry& entry : strategy_catalog())
    if (entry.name == kind) return entry.make();
  throw ConfigError("strategy.kind", fmt::format("there is no strategy '{}'", kind));
}

std::vector<std::string> Strategy::roles(const ClusterConfig& cluster) const {
  return std::vector<std::string>(static_cast<size_t>(cluster.workers), "worker");
}

void Strategy::validate_optimizer(const OptimizerConfig&) const {}

void Strategy::validate_data(const Data&, const ClusterConfig&) const {}

Architecture Strategy::arrange(const Plan& plan) const { return plan.architecture; }

std::unique_ptr<Answerer> Strategy::answerer(const Plan&, Model&, const Attachment&) const {
  return nullptr;
}

void Strategy::validate_plan(const Plan&) const {}

std::vector<std::string> Strategy::explain(const Plan&) const { return {}; }

std::string Strategy::plan_in_words(const Plan&) const { return ""; }

void Strategy::settle(const Plan&, ClusterConfig&) {}

std::vector<Range> Strategy::layers_of(const Plan& plan, Rank) const {
  return {{0, plan.architecture.layers.size()}};
}

double Strategy::memory_bytes(const Plan& plan) const {
  const auto parameters = static_cast<double>(plan.architecture.parameter_count) * sizeof(float);
  const auto parts = std::max(plan.cluster.workers, plan.task.deterministic ? plan.task.lanes : 1);
  const int64_t most = (plan.task.global_batch + parts - 1) / parts;
  const auto share = static_cast<double>(most);
  const double state = optimizer_cost(plan.optimizer, layout_of(plan.architecture)).values;
  return parameters * 2 + state * sizeof(float) +
         share * (plan.architecture.activation_bytes() + slope_bytes(plan.architecture)) +
         step_cost(plan).extra_memory;
}

std::vector<double> Strategy::memory_by_worker(const Plan& plan) const {
  return std::vector<double>(static_cast<size_t>(plan.cluster.workers), memory_bytes(plan));
}

double Strategy::server_memory_bytes(const Plan& plan) const { return memory_bytes(plan); }

size_t Strategy::window_bytes(const Plan&) const { return 0; }

SharedMemory Strategy::share(Node& node, const Plan& plan, Log&) const {
  const size_t bytes = window_bytes(plan);
  if (bytes == 0) return {};
  Window* const window = node.endpoint().open_window(bytes, node.timeout_s());
  if (!window)
    throw FabricError(FabricError::Kind::kUnavailable, kAnyRank,
                      "this strategy sums in shared memory, but the nodes are on several hosts");
  return {window, values_in<float>(window->of(node.endpoint().rank()))
                      .first(plan.architecture.parameter_count)};
}

int64_t Strategy::least_parts(const ClusterConfig& cluster) const { return cluster.workers; }

double Strategy::samples_per_step(const TaskConfig&, const ClusterConfig&, size_t) const {
  return 0;
}

int64_t Strategy::steps(const TaskConfig&, const Data&) const { return 0; }

Resumed Strategy::resumed(const Plan&, const Data&) const { return {}; }

std::string Strategy::equivalence(const TaskConfig&) const { return ""; }

bool Strategy::goes_on_without(std::string_view, Rank) const { return false; }

void Strategy::fit(ClusterConfig&) const {}

}  // namespace tutti
