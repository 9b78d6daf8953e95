// The gradients of the step that is open, and which of them make up its update.
//
// The first shard counts; where there is something to choose, it decides, and the others do as it
// says. What a lost worker was to compute, somebody else computes again, for all who wait for the
// next version still have this one.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "strategies/parameter_server/consistency.h"
#include "strategies/parameter_server/roster.h"
#include "strategies/parameter_server/turn.h"

namespace tutti::parameter_server {

struct Gathered {
  Request push;
  int worker = 0;
  GradientName name() const { return {worker, push.sequence}; }
  void archive(Archive& archive) { archive(push, worker); }
};

class Gathering {
 public:
  // All of these have to outlive it.
  Gathering(const StateSettings& settings, const Consistency& consistency, const Roster& workers)
      : settings_(settings), consistency_(consistency), workers_(workers) {}

  const std::vector<Gathered>& all() const { return all_; }
  bool has(const Hand& hand) const;
  void add(const Gathered& gathered) { all_.push_back(gathered); }
  void forget(const GradientName& name);
  std::vector<Gathered> take_all();
  // The coordinator's decision about the step that leads from `version` to the next. Without any
  // gradient: there will be none, unless a worker comes back and it decides again.
  void decide(int64_t version, std::span<const Decided> decided);
  void forget_decision(int64_t version) { decisions_.erase(version); }

  struct Choice {
    enum Kind {
      kWait,    // for more gradients
      kRepeat,  // for somebody who computes `missing` once more
      kSkip,    // nobody can compute what was decided on: the step does without any
      kClose,   // the step consists of `chosen`
      kEnd,     // the coordinator will decide on nothing more
    } kind = kWait;
    std::vector<Gathered> chosen = {};
    std::vector<Hand> missing = {};
  };
  // What is to be done about the step, when as many hands are left to the epoch (of the first
  // shard; otherwise 0). Removes from its decision what nobody can compute.
  Choice choose(int64_t version, size_t left_in_epoch);

  void archive(Archive& archive);

 private:
  Choice follow(std::vector<Decided>& decision);
  Choice count(size_t left_in_epoch) const;
  Choice repeat_orphans() const;
  void forget_lost(std::vector<Decided>& decided) const;

  const StateSettings& settings_;
  const Consistency& consistency_;
  const Roster& workers_;
  std::vector<Gathered> all_;
  std::map<int64_t, std::vector<Decided>> decisions_;
};

}  // namespace tutti::parameter_server
