#include "fabric/capabilities.h"

namespace tutti {

Capabilities capabilities_of(const ClusterConfig& cluster) {
  const bool simulated = cluster.fabric == FabricKind::kVirtual;
  const bool here = !simulated && cluster.remote == 0 && !cluster.remote_servers;
  return {.declared_hosts = simulated,
          .declared_memory = simulated,
          .one_machine = here,
          .concurrent_memory = here};
}

}  // namespace tutti
