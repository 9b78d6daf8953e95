// `tutti doctor`: what this machine offers, and what is missing.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/bench.h"
#include "cli/commands.h"
#include "jobs/versions.h"

namespace tutti {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// The transports that UCX finds here, by opening a context and asking for its resources.
std::string ucx_transports() {
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_TAG;
  ucp_context_h context = nullptr;
  if (ucp_init(&params, nullptr, &context) != UCS_OK) return "none";
  char* text = nullptr;
  size_t size = 0;
  FILE* stream = open_memstream(&text, &size);
  ucp_context_print_info(context, stream);
  fclose(stream);
  ucp_cleanup(context);
  std::string found;
  const std::string info(text, size);
  free(text);
  for (const char* name :
       {"posix", "sysv", "cma", "xpmem", "knem", "tcp", "rc_mlx5", "rc_verbs", "ud_verbs"})
    if (info.find(name) != std::string::npos)
      found += (found.empty() ? "" : ", ") + std::string(name);
  return found.empty() ? "none" : found;
}

std::string blas_library() {
  std::error_code failed;
  const auto path = fs::canonical("/etc/alternatives/libblas.so.3-x86_64-linux-gnu", failed);
  return failed ? "unknown" : path.string();
}

std::string shared_memory() {
  const int fd = memfd_create("tutti-doctor", MFD_CLOEXEC);
  if (fd < 0) return "no memfd: `direct` is not available";
  close(fd);
  struct statvfs info {};
  if (statvfs("/dev/shm", &info) != 0) return "memfd";
  return fmt::format("memfd, /dev/shm has {:.1f} GB free",
                     static_cast<double>(info.f_bavail) * static_cast<double>(info.f_frsize) / 1e9);
}

bool has_pidfd() {
  const long fd = syscall(SYS_pidfd_open, getpid(), 0);
  if (fd < 0) return false;
  close(static_cast<int>(fd));
  return true;
}

}  // namespace

int run_doctor(const CommonOptions& options) {
  const json machine = machine_description();
  const std::string folder = program_folder();
  const auto present = [&](const char* file) { return fs::exists(fs::path(folder) / file); };
  const json report = {{"cpu", machine["cpu"]},
                       {"hardware_threads", machine["hardware_threads"]},
                       {"memory_bytes", machine["memory_bytes"]},
                       {"kernel", machine["kernel"]},
                       {"ucx_transports", ucx_transports()},
                       {"shared_memory", shared_memory()},
                       {"pidfd", has_pidfd()},
                       {"blas", blas_library()},
                       {"rapl", fs::exists("/sys/class/powercap/intel-rapl:0/energy_uj")},
                       {"models_library", present("libtutti_torch.so")},
                       {"virtual_library", present("libtutti_virtual.so")},
                       {"fashion_mnist", fs::exists("/usr/share/datasets/fashion-mnist") ||
                                             fs::exists("/usr/share/dataset-fashion-mnist")},
                       {"peer_openmpi", present("peer_openmpi_allreduce")},
                       {"peer_gloo", present("peer_gloo_allreduce")},
                       {"peer_pytorch", fs::exists("/usr/lib/python3/dist-packages/torch")},
                       {"versions", library_versions()}};
  if (options.json) {
    std::cout << report.dump() << "\n";
    return 0;
  }
  const auto yes = [](const json& value) { return value.get<bool>() ? "yes" : "no"; };
  fmt::print("processor       {}, {} hardware threads\n", report["cpu"].get<std::string>(),
             report["hardware_threads"].get<int>());
  fmt::print("memory          {:.1f} GB\n", report["memory_bytes"].get<double>() / 1e9);
  fmt::print("transports      {} (UCX {}); `process` uses sysv\n",
             report["ucx_transports"].get<std::string>(),
             report["versions"]["ucx"].get<std::string>());
  fmt::print("shared memory   {}\n", report["shared_memory"].get<std::string>());
  fmt::print("loss of peers   {}\n",
             report["pidfd"].get<bool>() ? "pidfd" : "no pidfd: kernel 5.3 is needed");
  fmt::print("BLAS            {}\n", report["blas"].get<std::string>());
  fmt::print("energy          {}\n",
             report["rapl"].get<bool>() ? "RAPL" : "no RAPL: estimated from load");
  fmt::print("models          {} (LibTorch {})\n", yes(report["models_library"]),
             report["versions"]["libtorch"].get<std::string>());
  fmt::print("virtual         {} (SimGrid {})\n", yes(report["virtual_library"]),
             report["versions"]["simgrid"].get<std::string>());
  fmt::print("fashion-mnist   {}\n", yes(report["fashion_mnist"]));
  fmt::print("peers           Open MPI {}, gloo {}, PyTorch {}\n", yes(report["peer_openmpi"]),
             yes(report["peer_gloo"]), yes(report["peer_pytorch"]));
  return 0;
}

}  // namespace tutti
