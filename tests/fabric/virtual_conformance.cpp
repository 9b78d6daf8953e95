// The virtual fabric takes the conformance suite.
#include "fabric/virtual/virtual_fabric.h"
#include "tests/fabric/conformance.h"

namespace tutti {

const FabricUnderTest& fabric_under_test() {
  static const FabricUnderTest fabric{
      [](int nodes, const ConformanceOptions& options) {
        ClusterConfig config;
        config.fabric = "virtual";
        config.workers = nodes;
        config.nodes_per_host = nodes;
        config.timeout_s = options.timeout_s;
        auto roles = options.roles;
        if (roles.empty()) roles.assign(static_cast<size_t>(nodes), "worker");
        return make_virtual_fabric(config, roles, 1);
      },
      [](Node& node) { crash_virtual_node(node); },
      [](Node& node) { crash_virtual_node(node, 0.5); },
  };
  return fabric;
}

}  // namespace tutti
