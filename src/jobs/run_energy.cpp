#include "jobs/run_energy.h"

#include <fmt/format.h>
#include <unistd.h>

#include "fabric/cluster.h"
#include "jobs/energy.h"

namespace tutti {
namespace {

void simulated_parts(RunRecord& record, const ClusterConfig& cluster, const ClusterEnergy& energy) {
  std::vector<std::vector<int>> on_host(energy.hosts.size()), in_rack(energy.uplinks.size());
  for (int rank = 0; rank < static_cast<int>(record.outcomes.size()); ++rank) {
    on_host.at(static_cast<size_t>(host_of(cluster, rank))).push_back(rank);
    if (!in_rack.empty()) in_rack.at(static_cast<size_t>(rack_of(cluster, rank))).push_back(rank);
  }
  for (size_t i = 0; i < energy.hosts.size(); ++i)
    record.energy_parts.push_back({fmt::format("host {}", i), on_host[i], energy.hosts[i]});
  for (size_t i = 0; i < energy.links.size(); ++i)
    record.energy_parts.push_back({fmt::format("link of host {}", i), on_host[i], energy.links[i]});
  for (size_t i = 0; i < energy.uplinks.size(); ++i)
    record.energy_parts.push_back(
        {fmt::format("uplink of rack {}", i), in_rack[i], energy.uplinks[i]});
  record.energy_method = "simulated from the power of idle and busy hosts and links";
}

// Returns whether any node had counters. One node of a machine reads them, for all of it.
bool measured_parts(RunRecord& record) {
  for (const NodeReport& node : record.nodes)
    if (node.joules >= 0) {
      record.energy_parts.push_back({"training", {}, node.joules});
      record.energy_method = node.energy_method;
    }
  if (record.energy_parts.empty()) return false;
  record.energy_parts.push_back({"reading data", {}, record.data_joules});
  return true;
}

// Only of this machine: what the nodes elsewhere take is not known here. Computing is shared out
// by processor time.
void estimated_parts(RunRecord& record, const Job& job) {
  const auto remote = static_cast<int>(job.cluster.remote);
  const auto workers = static_cast<int>(job.cluster.workers);
  const bool servers_here = !job.cluster.remote_servers;
  const auto is_here = [&](int rank) {
    return rank < workers - remote || (rank >= workers && servers_here);
  };
  double cpu_s = record.data_cpu_s;
  for (const NodeReport& node : record.nodes)
    if (is_here(node.rank)) cpu_s += node.cpu_s;
  const Energy energy =
      estimate_energy(total_seconds(record), cpu_s, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)),
                      job.footprint.tdp_watts);
  const double joules_per_s = cpu_s > 0 ? energy.busy_joules / cpu_s : 0;
  record.energy_parts.push_back({"idle processor", {}, energy.idle_joules});
  record.energy_parts.push_back({"memory", {}, energy.memory_joules});
  record.energy_parts.push_back({"reading data", {}, record.data_cpu_s * joules_per_s});
  for (const NodeReport& node : record.nodes)
    if (is_here(node.rank))
      record.energy_parts.push_back(
          {fmt::format("node {}", node.rank), {node.rank}, node.cpu_s * joules_per_s});
  record.energy_method = energy.method;
  if (guests_of(job.cluster, std::ssize(record.nodes)) > 0)
    record.energy_method += "; of the launcher's machine alone";
}

}  // namespace

void add_energy(RunRecord& record, const Job& job, const FabricFigures& figures) {
  if (!figures.energy.hosts.empty())
    simulated_parts(record, job.cluster, figures.energy);
  else if (!measured_parts(record))
    estimated_parts(record, job);
  record.joules = 0;
  for (const EnergyPart& part : record.energy_parts) record.joules += part.joules;
}

}  // namespace tutti
