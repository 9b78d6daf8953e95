// A fabric makes nodes and runs one function on each.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "fabric/node.h"

namespace tutti {

// How one node's part in a run ended.
struct NodeOutcome {
  enum class Kind {
    kDone,         // the body returned; `result` is what it returned
    kFailed,       // the body threw; `error` says what, `exit_code` which kind
    kLost,         // the node died or was cut off
    kInterrupted,  // asked to stop; `result` is what the body returned or empty
  };
  Kind kind = Kind::kLost;
  std::string result;
  std::string error;
  int exit_code = 0;
  Rank lost_peer = kAnyRank;  // for kFailed by a lost peer: which
};

// Joules of a simulated cluster, by its parts.
struct ClusterEnergy {
  std::vector<double> hosts;
  std::vector<double> links;    // of each host, in the order of hosts; empty without a network
  std::vector<double> uplinks;  // of each rack
  double total() const {
    double sum = 0;
    for (const auto* parts : {&hosts, &links, &uplinks})
      for (const double joules : *parts) sum += joules;
    return sum;
  }
};

struct FabricFigures {
  ClusterEnergy energy;  // until the last node ended its part; without hosts: nothing is simulated
  double startup_s = 0;  // until the last node was ready
};

class Fabric {
 public:
  // What a node runs. It returns a result (any bytes) that reaches the caller of run().
  using Body = std::function<std::string(Node&)>;
  virtual ~Fabric() = default;
  // Runs `body` once on each node, a process or actor of its own, and returns each one's outcome
  // in rank order. Raising `stop` makes every node leave its Node calls by InterruptedError.
  virtual std::vector<NodeOutcome> run(const Body& body, const std::atomic<bool>& stop) = 0;
  virtual FabricFigures figures() const = 0;
};

}  // namespace tutti
