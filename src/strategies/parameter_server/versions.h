// How gradients become versions of a shard's parameters: each at once, or all of a step together.
//
// With the versions go what depends on their number: snapshots, copies for evaluations, and what
// the first shard announces to the others.
#pragma once

#include <deque>
#include <vector>

#include "strategies/parameter_server/coordinator.h"
#include "strategies/parameter_server/gathering.h"
#include "strategies/parameter_server/roster.h"

namespace tutti::parameter_server {

// What the first shard tells the others, by entry `index` of its chain.
struct Bulletin {
  uint64_t index = 0;
  Request request;
  std::vector<Decided> decided;
  void archive(Archive& archive) { archive(index, request, decided); }
};

class Versions {
 public:
  // All of these have to outlive it. `coordinator` is nullptr but for the first shard.
  Versions(const StateSettings& settings, const Timetable& timetable,
           const Consistency& consistency, const Roster& workers, Coordinator* coordinator);

  int64_t version() const { return version_; }  // updates
  int64_t samples() const { return samples_; }
  int64_t kept() const { return kept_; }  // the evaluation whose copy is kept
  const std::vector<Gathered>& gathered() const { return gathering_.all(); }
  const std::deque<Bulletin>& bulletins() const { return bulletins_; }  // the last ones

  // A gradient of this worker, whose clock has been advanced.
  void take_push(Turn& turn, int worker, const Request& push);
  // Closes the step that is open if it can be closed now. Returns what has to be computed once
  // more before.
  std::vector<Hand> close_step(Turn& turn);
  // Nobody will deliver this gradient, which a lost head had gathered.
  void forget(Turn& turn, const GradientName& name);
  // True: a step may be closed because of it.
  bool obey(Turn& turn, const Request& bulletin, std::span<const Decided> decided);
  void resume(int64_t version, int64_t samples);
  void archive(Archive& archive);

 private:
  void apply_at_once(Turn& turn, int worker, const Request& push);
  bool may_close(const Turn& turn, const std::vector<Gathered>& chosen) const;
  void close(Turn& turn, std::vector<Gathered> chosen);
  void announce_choice(Turn& turn, const std::vector<Gathered>& chosen);
  void count_applied(Turn& turn, const Gathered& gathered, int64_t round, double staleness);
  void drop(Turn& turn, const Gathered& gathered);
  void announce_end(Turn& turn);
  void drop_of_the_lost(Turn& turn);
  void advanced(Turn& turn);
  void keep_if_due(Turn& turn);
  void announce(Turn& turn, const Request& request, std::vector<Decided> decided = {});

  const StateSettings& settings_;
  const Timetable& timetable_;
  const Consistency& consistency_;
  const Roster& workers_;
  Coordinator* coordinator_;
  Gathering gathering_;
  std::deque<Bulletin> bulletins_;
  int64_t version_ = 0;
  int64_t samples_ = 0;
  int64_t kept_ = 0;
  int64_t to_keep_ = 0;  // the next evaluation, for which a copy is kept when
  int64_t keep_at_ = 0;  // this version is reached
};

}  // namespace tutti::parameter_server
