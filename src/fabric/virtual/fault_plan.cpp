#include "fabric/virtual/fault_plan.h"

#include <vector>

#include "fabric/virtual/world.h"

namespace tutti::simulation {
namespace {

// The network between these nodes is cut. Nodes of one host never need it.
Transfers::Separates separation(const World& world, const FaultConfig& fault) {
  std::vector<bool> named(static_cast<size_t>(world.size()));
  const bool link_down = fault.kind == "link_down";
  for (Rank rank = 0; rank < world.size(); ++rank)
    for (const int64_t node : fault.nodes)
      // A link belongs to a host: all nodes there go with it.
      if (node == rank || (link_down && world.platform().same_host(static_cast<Rank>(node), rank)))
        named[static_cast<size_t>(rank)] = true;
  return [&platform = world.platform(), named, link_down](Rank a, Rank b) {
    const bool at_a = named[static_cast<size_t>(a)];
    const bool at_b = named[static_cast<size_t>(b)];
    return !platform.same_host(a, b) && (link_down ? at_a || at_b : at_a != at_b);
  };
}

// Whose link it is. In a partition neither side is to blame.
std::vector<bool> whose_fault(const World& world, const FaultConfig& fault) {
  std::vector<bool> cut_off(static_cast<size_t>(world.size()));
  if (fault.kind != "link_down") return cut_off;
  for (Rank rank = 0; rank < world.size(); ++rank)
    for (const int64_t node : fault.nodes)
      if (world.platform().same_host(static_cast<Rank>(node), rank))
        cut_off[static_cast<size_t>(rank)] = true;
  return cut_off;
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
        world.separate(separates, whose_fault(world, fault));
      });
  });
}

}  // namespace

void plan_faults(World& world) {
  for (const FaultConfig& fault : world.config().faults)
    fault.kind == "crash" ? plan_crash(world, fault) : plan_cut(world, fault);
}

}  // namespace tutti::simulation
