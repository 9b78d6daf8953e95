#include "fabric/virtual/fault_plan.h"

#include <set>
#include <vector>

#include "fabric/virtual/world.h"

namespace tutti::simulation {
namespace {

// Returns the nodes that the fault names. A link belongs to a host, so all nodes there are named.
std::vector<bool> named_in(const World& world, const FaultConfig& fault) {
  std::vector<bool> named(static_cast<size_t>(world.size()));
  const bool of_links = fault.kind == FaultKind::kLinkDown;
  for (Rank rank = 0; rank < world.size(); ++rank)
    for (const int64_t node : fault.nodes)
      if (node == rank ||
          (of_links && world.platform().same_host(static_cast<Rank>(node), rank)))
        named[static_cast<size_t>(rank)] = true;
  return named;
}

// The network between these nodes is cut. Nodes of one host never need it.
Transfers::Separates separation(const World& world, const FaultConfig& fault) {
  return [&platform = world.platform(), named = named_in(world, fault),
          link_down = fault.kind == FaultKind::kLinkDown](Rank a, Rank b) {
    const bool at_a = named[static_cast<size_t>(a)];
    const bool at_b = named[static_cast<size_t>(b)];
    return !platform.same_host(a, b) && (link_down ? at_a || at_b : at_a != at_b);
  };
}

// Decides which side is lost. A dead link cuts off its own nodes. A partition cuts off the side
// with fewer hosts or, if both have as many, the side without rank 0, which keeps the record. So a
// single node is lost in the same way, whatever cuts it off.
std::vector<bool> cut_off_by(const World& world, const FaultConfig& fault) {
  std::vector<bool> named = named_in(world, fault);
  if (fault.kind == FaultKind::kLinkDown) return named;
  std::set<const void*> hosts, hosts_of_named;
  for (Rank rank = 0; rank < world.size(); ++rank)
    (named[static_cast<size_t>(rank)] ? hosts_of_named : hosts)
        .insert(world.platform().host_of(rank));
  const bool fewer = hosts_of_named.size() < hosts.size();
  const bool half = hosts_of_named.size() == hosts.size() && !named.front();
  if (!fewer && !half) named.flip();
  return named;
}

void plan_crash(World& world, const FaultConfig& fault) {
  world.agenda().at(fault.at_s, [&world, &fault] {
    for (const int64_t node : fault.nodes) world.crash(static_cast<Rank>(node), fault.restart_s);
  });
}

void plan_cut(World& world, const FaultConfig& fault) {
  const double detect_s = world.config().detect_s;
  world.agenda().at(fault.at_s, [&world, &fault, detect_s] {
    const Transfers::Separates separates = separation(world, fault);
    const uint64_t cut = world.transfers().cut(separates);
    if (fault.duration_s > 0)
      world.agenda().at(fault.at_s + fault.duration_s,
                        [&world, cut] { world.transfers().heal(cut); });
    if (fault.duration_s == 0 || fault.duration_s > detect_s)
      world.agenda().at(fault.at_s + detect_s, [&world, &fault, separates] {
        world.separate(separates, cut_off_by(world, fault));
      });
  });
}

}  // namespace

void plan_faults(World& world) {
  for (const FaultConfig& fault : world.config().faults)
    fault.kind == FaultKind::kCrash ? plan_crash(world, fault) : plan_cut(world, fault);
}

}  // namespace tutti::simulation
