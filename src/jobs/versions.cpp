#include "jobs/versions.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "jobs/build_versions.h"

namespace tutti {
namespace {

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "unknown";
}

}  // namespace

nlohmann::json library_versions() {
  return {{"tutti", TUTTI_VERSION},           {"libtorch", TUTTI_LIBTORCH_VERSION},
          {"simgrid", TUTTI_SIMGRID_VERSION}, {"ucx", TUTTI_UCX_VERSION},
          {"compiler", __VERSION__},          {"fmt", FMT_VERSION}};
}

nlohmann::json machine_description() {
  utsname system{};
  uname(&system);
  return {{"cpu", processor()},
          {"hardware_threads", sysconf(_SC_NPROCESSORS_ONLN)},
          {"memory_bytes", static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE)},
          {"kernel", system.release}};
}

}  // namespace tutti
