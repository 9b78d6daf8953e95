#include "tests/strategies/parameter_server/model_worker.h"

#include <fmt/format.h>

#include <algorithm>

namespace tutti::parameter_server {

void ModelWorker::send(ModelLink& link, Request request) {
  request.sequence = ++link.sequence;
  request.clock = link.pushes;
  request.version = link.version;
  if (request.flags & Request::kPush) ++link.pushes;
  if (request.flags & Request::kPull) link.awaits = request.sequence;
  link.sent.push_back(request);
  link.way.push_back(request);
}

void ModelWorker::ask(uint32_t flags, const EvaluationShare& share) {
  for (ModelLink& link : links_) {
    Request request;
    request.flags = Request::kPull | flags;
    request.wanted = collects_ && began_ ? link.version + 1 : 0;
    if (share.id > 0 && &link == &links_.front()) {
      request.flags |= Request::kEvaluated;
      request.share = share;
    }
    send(link, request);
  }
}

void ModelWorker::push(ModelLink& link, const Hand& hand) {
  Request request;
  request.flags = Request::kPush | Request::kPull;
  if (phase_ == Phase::kEnding) request.flags |= Request::kFinal;
  request.wanted = collects_ ? link.version + 1 : 0;
  request.hand = hand;
  request.steps = 1;
  request.samples = 1;
  request.occupancy = 0.5 + 0.1 * hand.part;
  send(link, request);
}

std::string ModelWorker::take(int shard, const Reply& reply) {
  ModelLink& link = this->link(shard);
  if (reply.sequence != link.awaits) return "";  // the one before it was said again
  if (reply.kind == Reply::kRefused) return "a worker was refused";
  if (reply.kind == Reply::kDiverged) return "a worker is told that training has diverged";
  // Requests are executed in order, so all that was pushed before the pull is in it.
  if (reply.kind != Reply::kRepeat && reply.accounted != link.pushes)
    return fmt::format("{} pushes of a worker count, which pushed {}", reply.accounted,
                       link.pushes);
  link.reply = reply;
  if (reply.kind == Reply::kRepeat) {  // the step is still open, but this answer came
    if (reply.version != link.version) return "a gradient is to be repeated for another version";
    for (Request& request : link.sent)
      if (request.sequence == link.awaits) request.flags &= ~uint32_t{Request::kPull};
    push(link, reply.hand);
    return "";
  }
  link.awaits = 0;
  link.sent.clear();
  const bool all = std::none_of(links_.begin(), links_.end(),
                                [](const ModelLink& other) { return other.awaits > 0; });
  if (all) act();
  return "";
}

bool ModelWorker::awaits_version(int64_t version) {
  bool waits = false;
  for (ModelLink& link : links_) {
    if (link.reply.version >= version) continue;
    Request request;
    request.flags = Request::kPull;
    request.wanted = version;
    send(link, request);
    waits = true;
  }
  return waits;
}

void ModelWorker::evaluate(const EvaluationTask& task) {
  task_ = task;
  if (task.on_snapshot) {
    before_ = phase_;
    phase_ = Phase::kReading;
    for (ModelLink& link : links_) {
      Request request;
      request.flags = Request::kPull | Request::kSnapshot;
      request.share.id = task.id;
      send(link, request);
    }
    return;
  }
  Request request;
  request.flags = Request::kPull | Request::kHeaderOnly | Request::kEvaluated;
  if (phase_ == Phase::kEnding) request.flags |= Request::kFinal;
  request.share = share_of(task, {});
  if (phase_ == Phase::kTraining) commit();
  send(links_.front(), request);
}

void ModelWorker::act() {
  const Reply reply = links_.front().reply;
  if (phase_ == Phase::kReading) {
    phase_ = before_;
    return ask(phase_ == Phase::kEnding ? Request::kFinal : 0u, share_of(task_, {}));
  }
  if (phase_ == Phase::kLeaving) {
    phase_ = Phase::kGone;
    return;
  }
  if (reply.kind == Reply::kEvaluate) {
    if (collects_ && phase_ == Phase::kTraining && !reply.task.on_snapshot &&
        awaits_version(reply.version))
      return;
    return evaluate(reply.task);
  }
  if (phase_ == Phase::kTraining && reply.kind == Reply::kFinish) {
    phase_ = Phase::kEnding;
    return ask(Request::kFinal);
  }
  if (phase_ == Phase::kEnding) {
    Request request;
    request.flags = Request::kPull | Request::kHeaderOnly | Request::kGoodbye;
    phase_ = Phase::kLeaving;
    for (ModelLink& link : links_) send(link, request);
    return;
  }
  if (collects_ && awaits_version(reply.version)) return;
  commit();
  for (ModelLink& link : links_) push(link, reply.hand);
}

// A step is that of the first shard, even if others have closed it already.
void ModelWorker::commit() {
  for (ModelLink& link : links_)
    link.version = collects_ ? links_.front().reply.version : link.reply.version;
  began_ = true;
}

void ModelWorker::archive(Archive& archive) {
  archive(alive_, began_, phase_, before_, task_);
  for (ModelLink& link : links_)
    archive(link.sequence, link.pushes, link.version, link.awaits, link.reply, link.sent,
            link.way);
}

}  // namespace tutti::parameter_server
