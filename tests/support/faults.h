// Runs that may lose nodes: launching them and saying in a word how every node ended.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/random.h"
#include "fabric/outcome.h"
#include "tests/support/jobs.h"

namespace tutti::testing_support {

// Every way in which a run may end, a letter per node: (d)one, (l)ost, or (f)ailed by the loss of a
// peer, which it names. Anything else, or no end at all, is a defect. A node that only waited in
// vain, until its deadline, knows of no loss that would explain it: so ends a deadlock in a
// strategy, whose waits all have deadlines.
inline std::string stated_outcome(const std::vector<NodeOutcome>& outcomes) {
  std::string result;
  for (const NodeOutcome& outcome : outcomes) {
    using Kind = NodeOutcome::Kind;
    if (outcome.error.find("deadlock") != std::string::npos) return "deadlock";
    if (outcome.kind == Kind::kFailed && outcome.exit_code != kExitPeerLost)
      return "unexpected: " + outcome.error;
    if (outcome.kind == Kind::kFailed && outcome.lost_peer == kAnyRank) {
      std::string all = "waited in vain: " + outcome.error + "; all of them:";
      for (size_t rank = 0; rank < outcomes.size(); ++rank)
        all += fmt::format("\n  rank {}: {}", rank,
                           outcomes[rank].kind == Kind::kDone ? "done" : outcomes[rank].error);
      return all;
    }
    if (outcome.kind == Kind::kInterrupted) return "unexpected: interrupted";
    result += outcome.kind == Kind::kDone ? 'd' : outcome.kind == Kind::kLost ? 'l' : 'f';
  }
  return result;
}

inline RunRecord run_job(Job& job) {
  const std::atomic<bool> never{false};
  return launch(job, {.out = "", .keep_files = false, .progress = ProgressStyle::kNone}, never);
}

// Gives each of these jobs up to two faults of any kind, of any node, within its first seconds, and
// expects it to end in a stated outcome. Some have to be done and some to lose nodes, or the
// schedules test nothing.
inline void expect_stated_outcomes(uint64_t seeds, double within_s, int more_than,
                                   const std::function<Job(Random&)>& make_job) {
  int done = 0, ended_by_loss = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    Random random(seed, Stream::kFault);
    Job job = make_job(random);
    const uint64_t nodes = resolve(job).plan.roles().size();
    for (uint64_t i = random.below(3); i > 0; --i) {
      FaultConfig fault;
      constexpr FaultKind kKinds[] = {FaultKind::kCrash, FaultKind::kLinkDown,
                                      FaultKind::kPartition};
      fault.kind = kKinds[random.below(3)];
      fault.at_s = random.uniform() * within_s;
      fault.nodes = {static_cast<int64_t>(random.below(nodes))};
      const double heals_s = random.below(2) ? random.uniform() * 0.1 : 0;
      (fault.kind == FaultKind::kCrash ? fault.restart_s : fault.duration_s) = heals_s;
      job.cluster.faults.push_back(fault);
    }
    const RunRecord record = run_job(job);
    const std::string outcome = stated_outcome(record.outcomes);
    ASSERT_EQ(outcome.find_first_not_of("dlf"), std::string::npos)
        << "seed " << seed << ": " << outcome;
    ++(record.status == RunStatus::kDone ? done : ended_by_loss);
  }
  EXPECT_GT(done, more_than);
  EXPECT_GT(ended_by_loss, more_than);
}

}  // namespace tutti::testing_support
