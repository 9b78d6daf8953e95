#include <fmt/format.h>

#include "core/error.h"
#include "strategies/allreduce.h"
#include "strategies/early_exit/early_exit.h"
#include "strategies/elastic_averaging.h"
#include "strategies/federated_averaging/federated_averaging.h"
#include "strategies/gossip/gossip.h"
#include "strategies/hogwild.h"
#include "strategies/hybrid.h"
#include "strategies/local_sgd.h"
#include "strategies/model_averaging.h"
#include "strategies/parameter_server/parameter_server.h"
#include "strategies/pipeline/pipeline.h"
#include "strategies/pipeline_servers/pipeline_servers.h"
#include "strategies/scheduled/scheduled.h"
#include "strategies/solo.h"
#include "strategies/strategy.h"
#include "strategies/tensor.h"

namespace tutti {

const std::vector<StrategyEntry>& strategy_catalog() {
  static const std::vector<StrategyEntry> entries = {
      {"solo",
       "one worker alone: the baseline",
       make_solo,
       solo_variants,
       true,
       {"single", "none"}},
      {"allreduce",
       "every worker sums all gradients and takes the same step",
       make_allreduce,
       allreduce_variants,
       false,
       {"ddp", "dp", "data_parallel", "horovod", "nccl"}},
      {"early_exit", "layers over device, edge and cloud; certain samples leave at the first exit",
       make_early_exit, early_exit_variants},
      {"elastic_averaging",
       "workers and a common centre attract each other",
       make_elastic_averaging,
       elastic_averaging_variants,
       false,
       {"easgd"}},
      {"federated_averaging",
       "a server averages what some of many clients learn on their own data",
       make_federated_averaging,
       federated_averaging_variants,
       false,
       {"fedavg", "federated", "fl"}},
      {"gossip",
       "workers average with their neighbours on a graph",
       make_gossip,
       gossip_variants,
       false,
       {"dpsgd", "d-psgd"}},
      {"hogwild", "all workers of a host update shared parameters without locks", make_hogwild,
       hogwild_variants},
      {"hybrid",
       "copies of a model, each cut into stages, each stage split into shards",
       make_hybrid,
       hybrid_variants,
       false,
       {"3d"}},
      {"local_sgd", "workers take steps on their own and average every so often", make_local_sgd,
       local_sgd_variants},
      {"model_averaging", "workers train in isolation and a master merges their models",
       make_model_averaging, model_averaging_variants},
      {"parameter_server",
       "servers hold the parameters; workers push gradients and pull them",
       make_parameter_server,
       parameter_server_variants,
       false,
       {"ps", "downpour", "bsp", "ssp"}},
      {"pipeline",
       "the layers over nodes; batches go through in parts, one behind the other",
       make_pipeline,
       pipeline_variants,
       false,
       {"pp", "gpipe", "pipedream"}},
      {"pipeline_servers", "a pipeline whose stages have their parameters on servers",
       make_pipeline_servers, pipeline_servers_variants},
      {"scheduled", "coordinate descent; a scheduler picks weights that do not conflict",
       make_scheduled, scheduled_variants},
      {"tensor",
       "every layer over all nodes, which sum within each block",
       make_tensor,
       tensor_variants,
       false,
       {"tp", "megatron"}},
  };
  return entries;
}

const StrategyEntry& strategy_entry(std::string_view kind) {
  for (const StrategyEntry& entry : strategy_catalog())
    if (entry.name == kind) return entry;
  throw ConfigError("strategy.kind", fmt::format("there is no strategy '{}'", kind));
}

std::unique_ptr<Strategy> make_strategy(std::string_view kind) {
  return strategy_entry(kind).make();
}

std::unique_ptr<Answerer> Strategy::answerer(const PlanInput&, Model&,
                                             const LoadAttachment&) const {
  return nullptr;
}

}  // namespace tutti
