#include "jobs/plugins.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "core/error.h"
#include "fabric/process/process_fabric.h"
#include "fabric/virtual/virtual_fabric.h"
#include "models/sparse_model.h"

namespace tutti {
namespace {

// The library lies beside the program; tests run from a folder below.
void* symbol_of(const char* library, const char* symbol) {
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (const auto& candidate : {folder / library, folder.parent_path() / library}) {
    if (!std::filesystem::exists(candidate)) continue;
    void* handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) throw Error(fmt::format("{}: {}", candidate.string(), dlerror()));
    void* found = dlsym(handle, symbol);
    if (!found) throw Error(fmt::format("{}: {}", candidate.string(), dlerror()));
    return found;
  }
  throw Error(fmt::format("{}: not found beside the program in {}; build it with ./scripts/build",
                          library, folder.string()));
}

}  // namespace

const ModelMaker& load_torch_models(int threads) {
  // OpenBLAS starts its threads when it is loaded, and a process with threads cannot be forked
  // safely; so this is decided before.
  const std::string count = std::to_string(threads);
  setenv("OPENBLAS_NUM_THREADS", threads == 1 ? "1" : count.c_str(), 1);
  setenv("OMP_NUM_THREADS", count.c_str(), 1);
  return *static_cast<const ModelMaker*>(symbol_of("libtutti_torch.so", "tutti_torch_models"));
}

const ModelMaker& load_models(const Architecture& architecture, int threads) {
  return architecture.row_width > 0 ? kSparseModels : load_torch_models(threads);
}

std::unique_ptr<Fabric> make_fabric(const ClusterConfig& cluster, std::vector<std::string> roles,
                                    uint64_t seed, const Recruiting& recruiting) {
  if (cluster.fabric == FabricKind::kVirtual) {
    const auto make = *static_cast<const MakeFabric*>(
        symbol_of("libtutti_virtual.so", "tutti_make_virtual_fabric"));
    return make(cluster, std::move(roles), seed);
  }
  ProcessOptions options;
  options.timeout_s = cluster.timeout_s;
  options.remote = static_cast<int>(guests_of(cluster, std::ssize(roles)));
  if (!cluster.remote_servers) options.remote_end = static_cast<int>(cluster.workers);
  options.listen = cluster.listen;
  options.join_timeout_s = cluster.join_timeout_s;
  options.briefing = recruiting.briefing;
  options.invite = recruiting.invite;
  options.welcome = recruiting.welcome;
  return make_process_fabric(std::move(roles), options);
}

}  // namespace tutti
