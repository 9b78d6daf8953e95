// Libraries that are slow to load and that most commands do without: LibTorch and SimGrid.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fabric/cluster.h"
#include "fabric/fabric.h"
#include "models/model.h"

namespace tutti {

// Loads libtutti_torch.so from beside the program. `threads` is fixed at the first call: BLAS
// reads it when it is loaded.
const ModelMaker& load_torch_models(int threads);
// The same, only where this architecture needs it.
const ModelMaker& load_models(const Architecture& architecture, int threads);

// For workers that are not started here (cluster.remote).
struct Recruiting {
  std::string briefing;  // what they are told
  std::function<void(const std::string& address, const std::string& token)> invite;
  std::function<void(Rank, const std::string& origin)> welcome;
};

// Makes the fabric that the cluster asks for; loads libtutti_virtual.so if it is the virtual one.
std::unique_ptr<Fabric> make_fabric(const ClusterConfig& cluster, std::vector<std::string> roles,
                                    uint64_t seed, const Recruiting& recruiting = {});

}  // namespace tutti
