// Whether the nodes of a plan have the memory that it needs.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "core/error.h"
#include "core/units.h"
#include "fabric/capabilities.h"
#include "jobs/resolve.h"

namespace tutti {
namespace {

[[noreturn]] void refuse_for_machine(const Job& job, const Architecture& architecture,
                                     const Shortage& shortage) {
  const double each = shortage.needed_bytes / static_cast<double>(shortage.workers);
  const bool one = shortage.workers == 1;
  throw ConfigError(
      "cluster.workers",
      fmt::format("{}{} of strategy.kind = \"{}\" {} {}{} for {} parameters, the optimizer and a "
                  "batch, more than the {} of this machine; use a smaller task.model or "
                  "task.global_batch{}, or simulate it (cluster.fabric = \"virtual\")",
                  place_in(job.places, "cluster.workers"),
                  one ? "a worker" : fmt::format("{} workers", shortage.workers), job.strategy_kind,
                  one ? "needs" : "need", human_quantity(shortage.needed_bytes, Unit::kBytes),
                  one ? "" : fmt::format(" ({} each)", human_quantity(each, Unit::kBytes)),
                  architecture.parameter_count, human_quantity(shortage.there_bytes, Unit::kBytes),
                  one ? "" : ", fewer cluster.workers"));
}

// Nodes that join from elsewhere bring memory of their own.
std::optional<Shortage> shortage_of_machine(const Job& job, const Plan& plan) {
  // Of a sparse model a worker touches the rows that are in its data: all of them are a bound that
  // no run comes near.
  if (plan.architecture->row_width > 0) return std::nullopt;
  const int64_t here = std::max<int64_t>(0, plan.workers - job.cluster.remote);
  double sum = 0;
  for (size_t rank = 0; rank < static_cast<size_t>(here); ++rank)
    sum += plan.nodes[rank].memory_bytes;
  const double there = machine_memory_bytes();
  if (sum <= there) return std::nullopt;
  return Shortage{.worker = 0, .workers = here, .needed_bytes = sum, .there_bytes = there};
}

}  // namespace

double machine_memory_bytes() {
  double bytes =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  // Versions 2 and 1 of control groups, as a container sees its own; "max" and a file that is not
  // there are no numbers, and no limit.
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(path);
    if (double limit = 0; file >> limit && limit > 0) bytes = std::min(bytes, limit);
  }
  return bytes;
}

std::optional<Shortage> shortage_of_memory(const Job& job, const Plan& plan) {
  if (!capabilities_of(job.cluster).declared_memory) return shortage_of_machine(job, plan);
  for (int64_t worker = 0; worker < plan.workers; ++worker) {
    const double needed = plan.nodes[static_cast<size_t>(worker)].memory_bytes;
    const double there = memory_of(job.cluster, worker);
    if (needed > there)
      return Shortage{.worker = worker, .workers = 1, .needed_bytes = needed, .there_bytes = there};
  }
  return std::nullopt;
}

void require_memory(const Job& job, const Plan& plan) {
  const Architecture& architecture = *plan.architecture;
  const auto shortage = shortage_of_memory(job, plan);
  if (!shortage) return;
  if (!capabilities_of(job.cluster).declared_memory)
    refuse_for_machine(job, architecture, *shortage);
  const bool alike = job.cluster.memory_factors.empty();
  throw ConfigError(
      "cluster.memory",
      fmt::format("{}{} of strategy.kind = \"{}\" needs {} for its part of {} parameters, of the "
                  "optimizer and of a batch, more than cluster.memory = {}{}; raise it, or split "
                  "the model: `tutti advise` says how it would fit",
                  place_in(job.places, "cluster.memory"),
                  alike ? "a worker" : fmt::format("worker {}", shortage->worker),
                  job.strategy_kind, human_quantity(shortage->needed_bytes, Unit::kBytes),
                  architecture.parameter_count,
                  human_quantity(job.cluster.memory_bytes, Unit::kBytes),
                  alike ? ""
                        : fmt::format(" leaves it with cluster.memory_factors, {}",
                                      human_quantity(shortage->there_bytes, Unit::kBytes))));
}

}  // namespace tutti
