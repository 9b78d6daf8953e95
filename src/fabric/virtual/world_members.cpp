// Who is in the world: crashes, restarts, partitions.
#include <fmt/format.h>

#include <simgrid/s4u.hpp>
#include <stdexcept>

#include "fabric/virtual/world.h"

namespace tutti::simulation {
namespace {

using Phase = Participant::Phase;

}  // namespace

void World::crash_self(Rank rank, double restart_s) {
  agenda_.soon([this, rank, restart_s] { crash(rank, restart_s); });
  participant(rank).wakeup->acquire();  // for ever: the crash unwinds this stack
  throw std::logic_error("a crashed node goes on");
}

void World::crash(Rank rank, double restart_s) {
  Participant& node = participant(rank);
  if (node.phase != Phase::kRunning) return;
  node.phase = Phase::kDown;
  node.outcome.kind = NodeOutcome::Kind::kLost;
  node.outcome.error = fmt::format("rank {} crashed at {} s", rank, now());
  if (node.deadline) agenda_.cancel(node.deadline);
  if (!node.blocked) --active_;
  node.blocked = node.woken = false;
  --running_;

  lose(rank);
  node.actor->kill();
  // With several nodes on a host it is a process that crashes, not the machine.
  if (config_.nodes_per_host == 1 && !config_.colocated) platform_.host_of(rank)->turn_off();
  if (restart_s > 0) {
    ++restarts_;
    agenda_.at(now() + restart_s, [this, rank] { restart(rank); });
  }
  change();
}

void World::lose(Rank rank) {
  mail_.sever([rank](Rank a, Rank b) { return a == rank || b == rank; });
  mail_.forget(rank);
  windows_.forget(rank);
  for (Rank other = 0; other < size(); ++other)
    if (participant(other).phase == Phase::kRunning && participant(other).members.alive(rank))
      participant(other).members.lose(rank, participant(rank).incarnation);
  wake_all();
}

void World::restart(Rank rank) {
  --restarts_;
  Participant& node = participant(rank);
  ++node.incarnation;
  node.members = Members();
  node.outcome = {};
  mail_.forget_from(rank);
  for (Rank other = 0; other < size(); ++other) {
    if (other == rank) continue;
    Participant& peer = participant(other);
    const bool reachable = transfers_.reachable(rank, other);
    // Who has ended, well or not, is not there for a node that begins now.
    if (peer.phase != Phase::kRunning || !reachable) node.members.absent_from_the_start(other);
    if (peer.phase == Phase::kRunning && reachable) peer.members.join(rank, node.incarnation);
  }
  platform_.host_of(rank)->turn_on();
  start(rank);
  change();
}

void World::separate(const Transfers::Separates& separates, const std::vector<bool>& cut_off) {
  for (Rank a = 0; a < size(); ++a) {
    Participant& node = participant(a);
    if (node.phase != Phase::kRunning) continue;
    node.cut_off = node.cut_off || cut_off[static_cast<size_t>(a)];
    for (Rank b = 0; b < size(); ++b)
      if (participant(b).phase == Phase::kRunning && separates(a, b) && node.members.alive(b))
        node.members.lose(b, participant(b).incarnation);
  }
  mail_.sever(separates);
  wake_all();
}

}  // namespace tutti::simulation
