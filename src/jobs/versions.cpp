#include "jobs/versions.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
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

void visit(RecordVisitor& v, Versions& versions) {
  constexpr Presence kWhenKnown = Presence::kWhenKnown;
  v.field("tutti", versions.tutti, "Version of this program", kWhenKnown);
  v.field("libtorch", versions.libtorch, "Version of LibTorch", kWhenKnown);
  v.field("simgrid", versions.simgrid, "Version of SimGrid", kWhenKnown);
  v.field("ucx", versions.ucx, "Version of UCX", kWhenKnown);
  v.field("compiler", versions.compiler, "Version of the compiler", kWhenKnown);
  v.field("fmt", versions.fmt, "Version of fmt, as it counts", kWhenKnown);
}

void visit(RecordVisitor& v, Machine& machine) {
  constexpr Presence kWhenKnown = Presence::kWhenKnown;
  v.field("cpu", machine.cpu, "Name of the processor", kWhenKnown);
  v.field("hardware_threads", machine.hardware_threads, "Number of hardware threads", kWhenKnown);
  v.field("memory_bytes", machine.memory_bytes, "Memory", kWhenKnown);
  v.field("kernel", machine.kernel, "Version of the kernel", kWhenKnown);
}

Versions library_versions() {
  return {TUTTI_VERSION, TUTTI_LIBTORCH_VERSION, TUTTI_SIMGRID_VERSION,
          TUTTI_UCX_VERSION, __VERSION__, FMT_VERSION};
}

Machine machine_description() {
  utsname system{};
  uname(&system);
  return {processor(), sysconf(_SC_NPROCESSORS_ONLN),
          static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE), system.release};
}

}  // namespace tutti
