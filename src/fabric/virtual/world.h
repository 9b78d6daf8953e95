// The simulated cluster while it runs: starts a node's body as an actor, blocks and wakes it, kills
// and restarts it, and notices when nothing can ever happen again.
//
// Everything happens in one process and one at a time: either an actor runs until it blocks, or,
// between the actors, the simulator's own context runs what Agenda and Transfers have scheduled.
// Actors only change plain data; all calls that the simulator acts upon are made in settle(), so
// that no actor is switched away from in the middle of a change.
#pragma once

#include <simgrid/forward.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/virtual/agenda.h"
#include "fabric/virtual/mail.h"
#include "fabric/virtual/members.h"
#include "fabric/virtual/platform.h"
#include "fabric/virtual/stragglers.h"
#include "fabric/virtual/transfers.h"
#include "fabric/virtual/window.h"

namespace tutti::simulation {

// What a blocked node waits for, for the wait-for graph. Lives on the node's stack.
class Waiting {
 public:
  virtual ~Waiting() = default;
  virtual std::string describe() const = 0;  // "rank 1 (gradient, step 3, part 0)"
};

struct Participant {
  enum class Phase { kRunning, kEnded, kDown } phase = Phase::kDown;
  uint32_t incarnation = 0;
  simgrid::s4u::ActorPtr actor;
  simgrid::s4u::SemaphorePtr wakeup;
  bool blocked = false;
  bool woken = false;    // while blocked: will go on as soon as the world settles
  bool expired = false;  // its deadline has passed
  bool deadlocked = false;
  bool cut_off = false;   // from the cluster, for good
  uint64_t deadline = 0;  // in the agenda
  const Waiting* waiting = nullptr;
  Members members;
  Traffic traffic;
  std::map<Rank, uint64_t> bytes_by_peer;  // those that it has sent to: few of thousands
  double started_s = 0;
  double busy_s = 0;
  double polled_s = 0;
  // Not reset by a restart, so that no random number is used twice.
  uint32_t steps = 0, chunks = 0;
  uint32_t stretch = 0;  // the step, the chunk or, where none ever begins, the charge that it is in
  bool takes_steps = false;
  bool ended_part = false;  // of the run: what it does besides takes no energy
  NodeOutcome outcome;
};

class World {
 public:
  using Stop = std::function<bool()>;
  World(const ClusterConfig& config, std::vector<std::string> roles, uint64_t seed,
        const Fabric::Body& body, Stop stop);

  struct Result {
    std::vector<NodeOutcome> outcomes;
    ClusterEnergy energy;
  };
  Result run();

  // For the actors.
  void leave_if_stopped() const;  // by InterruptedError
  // Until woken or `deadline_s`: false if that has passed. Woken for any reason: look again.
  bool block(Rank rank, double deadline_s, const Waiting& waiting);
  void sleep(Rank rank, double seconds);
  void charge(Rank rank, const Work& work);
  void begin_step(Rank rank);
  void begin_chunk(Rank rank);
  void end_part(Rank rank);
  [[noreturn]] void crash_self(Rank rank, double restart_s);

  // For all.
  void wake(Rank rank);
  void crash(Rank rank, double restart_s);  // not by an actor
  // Makes all pairs that `separates` names lose each other. Nodes in `cut_off` are lost to the run.
  void separate(const Transfers::Separates& separates, const std::vector<bool>& cut_off);

  const ClusterConfig& config() const { return config_; }
  const std::vector<std::string>& roles() const { return roles_; }
  int size() const { return static_cast<int>(roles_.size()); }
  Participant& participant(Rank rank) { return participants_[static_cast<size_t>(rank)]; }
  Platform& platform() { return platform_; }
  const Platform& platform() const { return platform_; }
  Agenda& agenda() { return agenda_; }
  Transfers& transfers() { return transfers_; }
  Mail& mail() { return mail_; }
  Windows& windows() { return windows_; }

 private:
  void start(Rank rank);
  void restart(Rank rank);
  void lose(Rank rank);  // all others do, and what is on its way from or to it. Not by an actor
  void live(Rank rank);  // the body of an actor
  void change();         // settle() soon, at this time
  void settle();
  void wake_all();
  void declare_deadlock();
  void finish();

  const ClusterConfig& config_;
  std::vector<std::string> roles_;
  const Fabric::Body& body_;
  Stop stop_;
  Agenda agenda_;
  Platform platform_;
  Transfers transfers_;
  Mail mail_;
  Windows windows_;
  Stragglers stragglers_;
  std::vector<Participant> participants_;
  std::vector<Rank> to_wake_;
  std::vector<Rank> given_up_;  // failed, but not lost to the others yet
  int active_ = 0;              // running and not blocked
  int running_ = 0;
  int restarts_ = 0;  // that are still to come
  bool changed_ = false;
  bool interrupted_ = false;
  std::string deadlock_;
  ClusterEnergy energy_;
};

}  // namespace tutti::simulation
