// Who may read which parameters when, and what it is told to do then.
#pragma once

#include <optional>

#include "strategies/parameter_server/versions.h"

namespace tutti::parameter_server {

class PullRules {
 public:
  // All of these have to outlive it. `coordinator` is nullptr but for the first shard.
  PullRules(const StateSettings& settings, const Versions& versions, Consistency& consistency,
            Roster& workers, Coordinator* coordinator)
      : settings_(settings),
        versions_(versions),
        consistency_(consistency),
        workers_(workers),
        coordinator_(coordinator) {}

  // Those who wait are about to be looked at, one after the other.
  void begin();
  // The reply to the pull of this worker; nothing: not yet.
  std::optional<Reply> reply_to(Turn& turn, int worker);

 private:
  bool may_end(Turn& turn, int worker, const Request& pull, Reply& reply) const;
  void forgive(WorkerRecord& asking, Reply& reply) const;
  bool directs(const Request& pull) const {
    return coordinator_ && !(pull.flags & Request::kRows);
  }

  const StateSettings& settings_;
  const Versions& versions_;
  Consistency& consistency_;
  Roster& workers_;
  Coordinator* coordinator_;
  // Found once for all who wait: with hundreds of workers this is what a server's time goes to.
  int64_t oldest_ = 0;
  bool nobody_active_ = false;
};

}  // namespace tutti::parameter_server
