#include "fabric/virtual/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <simgrid/Exception.hpp>
#include <simgrid/s4u.hpp>
#include <stdexcept>
#include <utility>

#include "core/error.h"
#include "fabric/outcome.h"
#include "fabric/virtual/fault_plan.h"
#include "fabric/virtual/virtual_node.h"

namespace tutti::simulation {
namespace {

using Phase = Participant::Phase;

struct Sleeping : Waiting {
  std::string describe() const override { return "nobody (it sleeps)"; }
};

std::unique_ptr<Flows> make_flows(const ClusterConfig& config, int nodes, const Platform& platform,
                                  Agenda& agenda, const Changed& changed) {
  auto flows = config.network_solver == NetworkSolver::kIncremental
                   ? make_solved_flows(config, nodes, agenda, changed)
                   : make_simgrid_flows(platform, changed);
  if (config.host_bandwidth <= 0) return flows;
  return make_local_flows(config, nodes, agenda, changed, std::move(flows));
}

// Enough to see the cycle; a thousand nodes in one message are of no use to anybody.
constexpr int kDescribedNodes = 64;

}  // namespace

World::World(const ClusterConfig& config, std::vector<std::string> roles, uint64_t seed,
             const Fabric::Body& body, Stop stop)
    : config_(config),
      roles_(std::move(roles)),
      body_(body),
      stop_(std::move(stop)),
      platform_(config, size()),
      transfers_(make_flows(config_, size(), platform_, agenda_, [this] { change(); }),
                 [this] { change(); }),
      mail_(size(), config.cost_only, transfers_, [this](Rank rank) { wake(rank); }),
      windows_(size()),
      stragglers_(config.stragglers, static_cast<Rank>(config.workers), seed),
      participants_(roles_.size()) {}

World::Result World::run() {
  simgrid::s4u::Engine::on_time_advance_cb([this](double) {
    if (!interrupted_ && stop_()) change();
  });
  plan_faults(*this);
  for (Rank rank = 0; rank < size(); ++rank) start(rank);
  simgrid::s4u::Engine::get_instance()->run();

  Result result;
  result.energy = std::move(energy_);
  for (Participant& node : participants_) result.outcomes.push_back(std::move(node.outcome));
  return result;
}

void World::start(Rank rank) {
  Participant& node = participant(rank);
  node.phase = Phase::kRunning;
  node.blocked = node.woken = node.expired = node.deadlocked = node.cut_off = false;
  node.ended_part = false;
  node.waiting = nullptr;
  node.traffic = {};
  node.bytes_by_peer.clear();
  node.started_s = now();
  node.busy_s = 0;
  node.wakeup = simgrid::s4u::Semaphore::create(0);
  ++running_;
  ++active_;
  node.actor = simgrid::s4u::Actor::create(fmt::format("rank {}", rank), platform_.host_of(rank),
                                           [this, rank] { live(rank); });
}

void World::live(Rank rank) {
  NodeOutcome outcome;
  try {
    VirtualNode node(*this, rank);
    outcome = run_body(body_, node);
  } catch (const simgrid::ForcefulKillException&) {
    throw;  // the node has crashed: the simulator unwinds its stack
  } catch (...) {
    outcome.kind = NodeOutcome::Kind::kFailed;
    outcome.error = "the body threw something that is no exception";
    outcome.exit_code = kExitInternal;
  }
  Participant& node = participant(rank);
  if (node.cut_off) outcome.kind = NodeOutcome::Kind::kLost;
  // Nobody should wait for a node that has given up; in a stop all of them do.
  if (outcome.kind == NodeOutcome::Kind::kFailed) given_up_.push_back(rank);
  node.outcome = std::move(outcome);
  node.phase = Phase::kEnded;
  --active_;
  --running_;
  change();
}

void World::leave_if_stopped() const {
  if (interrupted_ || stop_()) throw InterruptedError();
}

bool World::block(Rank rank, double deadline_s, const Waiting& waiting) {
  Participant& node = participant(rank);
  node.waiting = &waiting;
  node.blocked = true;
  node.expired = false;
  node.deadline = 0;
  if (std::isfinite(deadline_s))
    node.deadline = agenda_.at(deadline_s, [this, rank] {
      participant(rank).expired = true;
      wake(rank);
    });
  if (--active_ == 0) change();
  node.wakeup->acquire();
  node.waiting = nullptr;
  if (node.deadline && !node.expired) agenda_.cancel(node.deadline);
  if (std::exchange(node.deadlocked, false))
    throw FabricError(FabricError::Kind::kDeadlock, kAnyRank, deadlock_);
  leave_if_stopped();
  return !node.expired;
}

void World::sleep(Rank rank, double seconds) {
  leave_if_stopped();
  const double end_s = now() + seconds;
  if (!(seconds > 0)) return;
  while (block(rank, end_s, Sleeping())) {
  }
}

void World::charge(Rank rank, const Work& work) {
  leave_if_stopped();
  Participant& node = participant(rank);
  const double work_s =
      work.flops / speed_of(config_, rank) +
      memory_time_of(config_, work.memory_bytes, std::max(work.memory_bytes, work.range_bytes)) +
      overhead_of(config_, rank, work.passes, work.layers, work.steps);
  if (!node.takes_steps) ++node.stretch;
  const Delayed delayed = stragglers_.delay(rank, node.stretch, now(), work_s);
  if (node.ended_part) return sleep(rank, delayed.compute_s + delayed.pause_s);
  if (delayed.compute_s > 0) platform_.compute(rank, delayed.compute_s);
  node.busy_s += delayed.compute_s;
  sleep(rank, delayed.pause_s);
}

// The run's energy is that until the last of these moments.
void World::end_part(Rank rank) {
  participant(rank).ended_part = true;
  energy_ = platform_.energy();
}

void World::begin_step(Rank rank) {
  Participant& node = participant(rank);
  node.takes_steps = true;
  node.stretch = ++node.steps;
  if (config_.loop_overhead_s > 0) charge(rank, {.steps = 1});
}

// In numbers of their own: who measures how much must not decide which steps are slow.
void World::begin_chunk(Rank rank) {
  constexpr uint32_t kFirstChunk = uint32_t{1} << 31;
  Participant& node = participant(rank);
  node.takes_steps = true;
  node.stretch = kFirstChunk + ++node.chunks;
}

void World::wake(Rank rank) {
  Participant& node = participant(rank);
  if (node.phase != Phase::kRunning || !node.blocked || node.woken) return;
  node.woken = true;
  to_wake_.push_back(rank);
  change();
}

void World::wake_all() {
  for (Rank rank = 0; rank < size(); ++rank) wake(rank);
}

void World::change() {
  if (std::exchange(changed_, true)) return;
  agenda_.soon([this] { settle(); });
}

void World::settle() {
  if (!interrupted_ && stop_()) {
    interrupted_ = true;
    wake_all();
  }
  for (const uint64_t message : transfers_.collect()) mail_.landed(message);
  // What it said before arrives before the loss of it does, such as why.
  std::erase_if(given_up_, [&](Rank rank) {
    if (mail_.under_way_from(rank)) return false;
    lose(rank);
    return true;
  });
  transfers_.flush();
  if (to_wake_.empty() && active_ == 0 && agenda_.empty() && transfers_.idle()) declare_deadlock();
  for (const Rank rank : std::exchange(to_wake_, {})) {
    Participant& node = participant(rank);
    if (!node.blocked || !node.woken) continue;  // it crashed meanwhile
    node.blocked = node.woken = false;
    ++active_;
    node.wakeup->release();
  }
  changed_ = false;
  if (running_ == 0 && restarts_ == 0) finish();
}

void World::declare_deadlock() {
  deadlock_ = "deadlock: ";
  int described = 0;
  for (Rank rank = 0; rank < size(); ++rank) {
    Participant& node = participant(rank);
    if (node.phase == Phase::kRunning && node.blocked) {
      node.deadlocked = true;
      wake(rank);
    }
    const char* gone = node.phase == Phase::kEnded ? "has ended" : "is down";
    if (described++ < kDescribedNodes)
      deadlock_ += fmt::format("{}rank {} {}", rank == 0 ? "" : "; ", rank,
                               node.deadlocked ? "waits for " + node.waiting->describe() : gone);
  }
  if (described > kDescribedNodes)
    deadlock_ += fmt::format("; and {} more", described - kDescribedNodes);
}

// Nobody is left: what the agenda still holds (faults to come) must not prolong the run.
void World::finish() {
  if (energy_.hosts.empty()) energy_ = platform_.energy();
  agenda_.clear();
}

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
