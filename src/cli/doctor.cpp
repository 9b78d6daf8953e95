// `tutti doctor`: what this machine offers, and what is missing.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/arguments.h"
#include "cli/bench.h"
#include "cli/commands.h"
#include "core/described_json.h"
#include "core/error.h"
#include "fabric/process/channel.h"
#include "jobs/plugins.h"
#include "jobs/progress.h"
#include "jobs/run_folder.h"
#include "jobs/run_record.h"
#include "jobs/versions.h"
#include "testbed/this_machine.h"

namespace tutti {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// Names of the transports that a context has, in UCX's order: its lines end in "tcp/eth0".
std::vector<std::string> transports_of(ucp_context_h context) {
  char* text = nullptr;
  size_t size = 0;
  FILE* stream = open_memstream(&text, &size);
  ucp_context_print_info(context, stream);
  fclose(stream);
  std::istringstream lines(std::string(text, size));
  free(text);
  std::vector<std::string> found;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("resource ") == std::string::npos) continue;
    const std::string name = line.substr(line.rfind(' ') + 1);
    found.push_back(name.substr(0, name.find('/')));
  }
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::vector<std::string> all_transports() {
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_TAG;
  ucp_context_h context = nullptr;
  if (ucp_init(&params, nullptr, &context) != UCS_OK) return {};
  std::vector<std::string> found = transports_of(context);
  ucp_cleanup(context);
  return found;
}

// What the process fabric gets of those it asks for: it is asked, so that this is never just what
// it should get. `interface` as there: none between processes of one machine.
std::vector<std::string> chosen_transports(const std::string& interface) {
  try {
    return transports_of(process::UcxContext(interface).get());
  } catch (const FabricError&) {
    return {};
  }
}

bool has_transport(const std::vector<std::string>& transports, std::string_view name) {
  return std::find(transports.begin(), transports.end(), name) != transports.end();
}

std::string joined(const std::vector<std::string>& words) {
  return words.empty() ? "none" : fmt::format("{}", fmt::join(words, ", "));
}

// Loads what trains. Empty: it is there.
std::string why_no_models() {
  try {
    load_torch_models(1);
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

// The libraries of linear algebra in this process, once models are loaded: that of the system's
// alternatives, or whatever LD_LIBRARY_PATH or LD_PRELOAD put in its place.
std::vector<std::string> loaded_blas() {
  std::vector<std::string> found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* list) {
        std::error_code failed;
        const fs::path path = fs::canonical(info->dlpi_name, failed);
        const std::string name = path.filename().string();
        for (const char* known : {"libblas", "libopenblas", "libmkl_rt", "libblis", "libatlas"})
          if (!failed && name.starts_with(known))
            static_cast<std::vector<std::string>*>(list)->push_back(path.string());
        return 0;
      },
      &found);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

bool has_memfd() {
  const int fd = memfd_create("tutti-doctor", MFD_CLOEXEC);
  if (fd < 0) return false;
  close(fd);
  return true;
}

std::string shared_memory() {
  if (!has_memfd()) return "no memfd: `direct` is not available";
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

// Everything that is looked for, for both formats.
json examine() {
  const json machine = json_of(machine_description());
  const std::string folder = program_folder();
  const auto present = [&](const char* file) { return fs::exists(fs::path(folder) / file); };
  const std::vector<std::string> local = chosen_transports(""), remote = chosen_transports("lo");
  const std::string no_models = why_no_models();
  json report = {{"cpu", machine["cpu"]},
                 {"hardware_threads", machine["hardware_threads"]},
                 {"memory_bytes", machine["memory_bytes"]},
                 {"kernel", machine["kernel"]},
                 {"ucx_transports", joined(all_transports())},
                 {"transports_chosen", {{"same_machine", local}, {"other_machines", remote}}},
                 {"shared_memory", shared_memory()},
                 {"pidfd", has_pidfd()},
                 {"blas", no_models.empty() ? joined(loaded_blas()) : "unknown, without models"},
                 {"rapl", fs::exists("/sys/class/powercap/intel-rapl:0/energy_uj")},
                 {"models_library", no_models.empty()},
                 {"virtual_library", present("libtutti_virtual.so")},
                 {"fashion_mnist", fs::exists("/usr/share/datasets/fashion-mnist") ||
                                       fs::exists("/usr/share/dataset-fashion-mnist")},
                 {"peer_openmpi", present("peer_openmpi_allreduce")},
                 {"peer_gloo", present("peer_gloo_allreduce")},
                 {"peer_pytorch", fs::exists("/usr/lib/python3/dist-packages/torch")},
                 {"versions", json_of(library_versions())},
                 {"missing", json::array()}};
  const auto need = [&](bool there, const char* what, const std::string& remedy) {
    if (!there) report["missing"].push_back({{"what", what}, {"remedy", remedy}});
  };
  need(has_transport(local, "sysv"), "the transport sysv, for processes of this machine",
       "install libucx0, and allow System V shared memory (sysctl kernel.shmmax, kernel.shmmni)");
  need(has_transport(remote, "tcp"), "the transport tcp, for `tutti join`", "install libucx0");
  need(has_memfd(), "memfd, for topology = \"direct\"", "Linux 3.17 or later is needed");
  need(report["pidfd"], "pidfd, to notice lost processes", "Linux 5.3 or later is needed");
  need(no_models.empty(), "the models", no_models + "; ./scripts/setup installs LibTorch");
  need(report["virtual_library"], "the virtual fabric",
       "./scripts/setup installs SimGrid, ./scripts/build builds it");
  need(report["fashion_mnist"], "the data set fashion-mnist",
       "apt-get install dataset-fashion-mnist");
  const char* peers = "./scripts/build --bench installs it and builds what `tutti bench` runs";
  need(report["peer_openmpi"], "the peer Open MPI, for `tutti bench`", peers);
  need(report["peer_gloo"], "the peer gloo, for `tutti bench`", peers);
  need(report["peer_pytorch"], "the peer PyTorch, for `tutti bench`",
       "apt-get install python3-torch python3-numpy");
  return report;
}

}  // namespace

namespace {

void write_this_machine(const std::string& file, bool quiet, const std::atomic<bool>& stop) {
  const auto say = [&](const std::string& text) {
    if (!quiet) tell(fmt::format("tutti: {}\n", text));
  };
  write_file(file, cluster_file_text(measure_this_machine(0, say, stop)));
  say(fmt::format("{} describes this machine; use it by --cluster {}", file, file));
}

}  // namespace

int run_doctor(const DoctorOptions& options, const std::atomic<bool>& stop) {
  if (!options.write_cluster.empty()) {
    require_writable("--write-cluster", options.write_cluster);
    write_this_machine(options.write_cluster, options.quiet, stop);
  }
  const json report = examine();
  if (options.json) {
    std::cout << json_text(report) << "\n";
    return 0;
  }
  const auto text = [](const json& value) { return value.get<std::string>(); };
  const auto yes = [](const json& value) { return value.get<bool>() ? "yes" : "no"; };
  const json& chosen = report["transports_chosen"];
  fmt::print("processor       {}, {} hardware threads\n", text(report["cpu"]),
             report["hardware_threads"].get<int>());
  fmt::print("memory          {:.1f} GB\n", report["memory_bytes"].get<double>() / 1e9);
  fmt::print("transports      {} (UCX {})\n", text(report["ucx_transports"]),
             text(report["versions"]["ucx"]));
  fmt::print("  chosen        {} on this machine, {} to others\n",
             joined(chosen["same_machine"].get<std::vector<std::string>>()),
             joined(chosen["other_machines"].get<std::vector<std::string>>()));
  fmt::print("shared memory   {}\n", text(report["shared_memory"]));
  fmt::print("loss of peers   {}\n", report["pidfd"].get<bool>() ? "pidfd" : "no pidfd");
  fmt::print("BLAS            {}\n", text(report["blas"]));
  fmt::print("energy          {}\n",
             report["rapl"].get<bool>() ? "RAPL" : "no RAPL here: estimated from load");
  fmt::print("models          {} (LibTorch {})\n", yes(report["models_library"]),
             text(report["versions"]["libtorch"]));
  fmt::print("virtual         {} (SimGrid {})\n", yes(report["virtual_library"]),
             text(report["versions"]["simgrid"]));
  fmt::print("fashion-mnist   {}\n", yes(report["fashion_mnist"]));
  fmt::print("peers           Open MPI {}, gloo {}, PyTorch {}\n", yes(report["peer_openmpi"]),
             yes(report["peer_gloo"]), yes(report["peer_pytorch"]));
  for (const json& entry : report["missing"])
    fmt::print("missing         {}: {}\n", text(entry["what"]), text(entry["remedy"]));
  return 0;
}

}  // namespace tutti
