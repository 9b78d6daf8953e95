// The state machine of a shard: a pure function of its inputs, in their order.
//
// Inputs (entry.h) come from workers and from the membership; the head of the shard's chain puts
// them in order, and its replicas execute the same ones, so that all of them are in the same state.
// It knows no node, no clock and no memory. What differs between the consistency models is in
// consistency.h. A worker that sends nonsense is expelled, and one that is lost is gone; training
// goes on without.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strategies/parameter_server/pull_rules.h"
#include "strategies/parameter_server/versions.h"

namespace tutti::parameter_server {

class ShardState {
 public:
  explicit ShardState(StateSettings settings);
  ShardState(const ShardState&) = delete;  // parts refer to each other: archive() makes copies
  ShardState& operator=(const ShardState&) = delete;

  // Executes the input. Throws Error when it makes another number of updates than at the head.
  std::vector<Output> apply(const Input& input);

  // A worker may say again what the chain has: that must not be executed a second time.
  bool has_executed(int worker, uint64_t sequence) const {
    return sequence <= workers_[worker].executed;
  }
  // The reply to a request that was executed, because the first one may not have arrived; the
  // parameters that go with it are as new as can be. Nothing when it was not answered yet.
  std::optional<output::Send> answer_again(int worker, const Request& request) const;

  const StateSettings& settings() const { return settings_; }
  const Roster& workers() const { return workers_; }
  const Consistency& consistency() const { return *consistency_; }
  const Versions& versions() const { return versions_; }
  bool diverged() const { return diverged_; }
  bool closed() const { return closed_; }  // everybody has said goodbye and was answered

  // Goes on from a snapshot. False: it was of another cluster.
  bool resume(int64_t version, int64_t samples, std::span<const int64_t> coordinator);
  void archive(Archive& archive);  // all of it

 private:
  void take(Turn& turn, int index, const Request& request);
  bool take_report(Turn& turn, int index, const Request& request);
  void lose(Turn& turn, int index);
  void join(Turn& turn, int index, uint32_t incarnation);
  void expel(Turn& turn, int index, const std::string& why);
  void remove(Turn& turn, int index);
  void close_step(Turn& turn);
  void ask_to_repeat(Turn& turn, const Hand& hand);
  void answer_all(Turn& turn);
  void answer(Turn& turn, int index);
  void send(Turn& turn, int index, Reply reply, output::Send::Source source);
  uint64_t elements_of(const Request& pull) const;

  StateSettings settings_;
  Timetable timetable_;
  std::unique_ptr<Consistency> consistency_;
  Roster workers_;
  std::unique_ptr<Coordinator> coordinator_;  // the first shard's
  Versions versions_;
  PullRules rules_;
  bool diverged_ = false;
  bool closed_ = false;
};

}  // namespace tutti::parameter_server
