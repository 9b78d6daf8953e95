#include "strategies/parameter_server/pull_rules.h"

namespace tutti::parameter_server {

void PullRules::begin() {
  oldest_ = workers_.oldest();
  nobody_active_ = workers_.active().empty();
}

std::optional<Reply> PullRules::reply_to(Turn& turn, int worker) {
  WorkerRecord& asking = workers_[worker];
  const Request& pull = *asking.pull;
  Reply reply;
  reply.version = versions_.version();
  reply.accounted = asking.clock;
  reply.samples = coordinator_ ? coordinator_->samples() : versions_.samples();
  if (pull.flags & Request::kSnapshot) {
    if (versions_.kept() < pull.share.id) return std::nullopt;
    return reply;
  }
  if (pull.flags & Request::kGoodbye) {
    reply.kind = Reply::kDone;
    return reply;
  }
  if (pull.flags & Request::kFinal) {
    if (!may_end(turn, worker, pull, reply)) return std::nullopt;
    return reply;
  }
  if (versions_.version() < pull.wanted) return std::nullopt;
  // An adaptive bound is the coordinator's; the others take it from what the worker was told.
  const bool follows = follows_reports(settings_.config) && !coordinator_;
  reply.bound = follows ? pull.bound : consistency_.bound(worker);
  const int64_t clock = asking.lead() + pull.clock + (pull.flags & Request::kAhead ? 1 : 0) +
                        (pull.flags & Request::kPush ? 1 : 0);
  reply.oldest = oldest_ - asking.lead();
  if (!(pull.flags & Request::kHeaderOnly) &&
      !consistency_.may_read(clock, oldest_, reply.bound, asking.waited)) {
    asking.waited = true;
    return std::nullopt;
  }
  if (!directs(pull)) return reply;
  const bool newcomer = asking.incarnation > 0 && asking.clock == 0;
  if (!coordinator_->direct(turn, worker, false, newcomer, workers_.active(), reply))
    return std::nullopt;
  forgive(asking, reply);
  return reply;
}

// Everybody's last gradients come before everybody's last pull.
bool PullRules::may_end(Turn& turn, int worker, const Request& pull, Reply& reply) const {
  if (!nobody_active_ || !versions_.gathered().empty()) return false;
  reply.kind = Reply::kDone;
  return !directs(pull) ||
         coordinator_->direct(turn, worker, true, false, workers_.present(), reply);
}

// It says so in its next request to every shard, so that all of them compare the same clocks, and
// who is behind all others is behind all others everywhere.
void PullRules::forgive(WorkerRecord& asking, Reply& reply) const {
  reply.forgiven = asking.forgiven;
  if (!consistency_.forgives(asking.clock - asking.forgiven_at)) return;
  const int64_t behind = workers_.fastest() - asking.position();
  if (behind <= 0) return;
  reply.forgiven += behind;
  asking.forgiven_at = asking.clock;
}

}  // namespace tutti::parameter_server
