// What is left of larger classes. A line goes when its class has been taken apart.
#include "tests/tidy/class_rules.h"

namespace tutti::tidy {

const std::vector<LargeClass>& large_classes() {
  static const char* kOneProtocol = "one party of a protocol: its functions are its messages";
  static const char* kLoop = "one loop of training and all that it carries from step to step";
  static const std::vector<LargeClass> list = {
      {"src/fabric/process/reactor.h", "Reactor", 28, 24,
       "the one place that sleeps: transport, mail, windows and the launcher's word wake it"},
      {"src/fabric/virtual/mail.h", "Mail", 21, 6, kOneProtocol},
      {"src/fabric/virtual/world.h", "World", 22, 20,
       "one simulation, whose actors share everything that is not theirs"},
      {"src/jobs/participant.cpp", "Participant", 19, 22,
       "the steps of a node's run in order, and what each leaves for the next"},
      {"src/models/builder.h", "Builder", 25, 6, "one function for each kind of layer"},
      {"src/strategies/federated_averaging/server.h", "Server", 14, 21, kLoop},
      {"src/strategies/pairwise.h", "PairwiseExchange", 13, 17, kOneProtocol},
      {"src/strategies/parameter_server/chain.h", "Chain", 16, 17, kOneProtocol},
      {"src/strategies/parameter_server/link.h", "Link", 23, 29, kOneProtocol},
      {"src/strategies/parameter_server/receiver.h", "Receiver", 25, 14, kOneProtocol},
      {"src/strategies/parameter_server/server_node.h", "ServerNode", 20, 18, kOneProtocol},
      {"src/strategies/pipeline/stage_worker.h", "StageWorker", 24, 28, kLoop},
      {"src/strategies/scheduled/worker.h", "CoordinateWorker", 11, 23, kLoop},
  };
  return list;
}

const std::vector<SpreadClass>& spread_classes() {
  static const std::vector<SpreadClass> list = {};
  return list;
}

}  // namespace tutti::tidy
