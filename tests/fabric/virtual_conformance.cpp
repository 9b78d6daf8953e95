// The virtual fabric takes the conformance suite: all nodes on one host, where they talk through
// memory and share windows, or (TUTTI_TEST_ONE_HOST=0) each on its own, over the
// network, whose links SimGrid shares or (TUTTI_TEST_SOLVER) the solver of our own.
#include "fabric/virtual/virtual_fabric.h"
#include "tests/fabric/conformance.h"

namespace tutti {

const FabricUnderTest& fabric_under_test() {
  static const FabricUnderTest fabric{
      [](int nodes, const ConformanceOptions& options) {
        ClusterConfig config;
        config.fabric = FabricKind::kVirtual;
        config.workers = nodes;
        config.nodes_per_host = TUTTI_TEST_ONE_HOST ? nodes : 1;
        config.network_solver = NetworkSolver::TUTTI_TEST_SOLVER;
        config.timeout_s = options.timeout_s;
        auto roles = options.roles;
        if (roles.empty()) roles.assign(static_cast<size_t>(nodes), "worker");
        return make_virtual_fabric(config, roles, 1);
      },
      TUTTI_TEST_ONE_HOST != 0,
      100,
      100,
      [](Node& node) { crash_virtual_node(node); },
      [](Node& node) { crash_virtual_node(node, 0.5); },
  };
  return fabric;
}

}  // namespace tutti
