#include "strategies/parameter_server/worker.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "fabric/exchange.h"
#include "strategies/compute.h"
#include "strategies/parameter_layout.h"
#include "strategies/parameter_server/consistency.h"
#include "strategies/parameter_server/layout.h"

namespace tutti::parameter_server {
namespace {

// All servers that owe a reply are named, because none of the replies came.
template <class Links>
[[noreturn]] void throw_late(const Links& links, double timeout_s) {
  std::string late;
  Rank first = kAnyRank;
  for (const Link& link : links) {
    if (!link.awaits()) continue;
    late += fmt::format("{}rank {}", late.empty() ? "" : ", ", link.server());
    if (first == kAnyRank) first = link.server();
  }
  throw FabricError(FabricError::Kind::kTimedOut, first,
                    fmt::format("no reply of a server for {} s ({}); if it is only slow, raise "
                                "cluster.timeout",
                                timeout_s, late));
}

}  // namespace

Worker::Worker(Context& context, const Config& config)
    : context_(context),
      config_(config),
      collects_(make_consistency(config, context.cluster.workers)->collects()),
      timetable_(context.task, context.optimizer, context.data.splits.train.size()),
      local_(context),
      started_s_(context.node.clock().now()),
      incoming_(context.model.parameters().size()),
      accrued_(config.pull_every > 1 ? incoming_.size() : 0),
      layout_(layout_of(context.model.architecture(), {0, incoming_.size()})),
      optimizer_(config.pull_every > 1 ? make_optimizer(context.optimizer, layout_) : nullptr),
      sums_(context.task.deterministic ? incoming_.size() : 0),
      ring_(context.node, static_cast<Rank>(context.cluster.workers), config),
      bound_(config.staleness),
      asked_s_(started_s_),
      by_layers_(pulls_layers(config) && context.model.architecture().row_width == 0) {
  const Architecture& architecture = context.model.architecture();
  auto shards = detail_of<ServerDetail>(context.plan).shards;
  if (architecture.row_width > 0) shards.assign(shards.size(), {0, 0});  // rows go by their keys
  for (size_t i = 0; i < shards.size(); ++i) {
    links_.emplace_back(context, config, ring_, static_cast<int>(i), shards[i], incoming_.span());
    pieces_.push_back(pieces_of(architecture, shards[i]));
  }
}

void Worker::run() {
  try {
    train();
    finish();
  } catch (const DivergedError&) {
    leave();
    throw;
  } catch (const FabricError& error) {
    if (config_.snapshot_every == 0 || context_.folder.empty() ||
        error.kind() != FabricError::Kind::kPeerLost || error.peer() < ring_.first_server())
      throw;
    throw with_loss(error);
  }
}

// Snapshots are taken of every version that `snapshot_every` divides.
FabricError Worker::with_loss(const FabricError& error) {
  const int64_t version = coordinator().version();
  const int64_t lost = version % config_.snapshot_every;
  if (context_.node.endpoint().rank() == 0) context_.recorder.count("updates_lost", lost);
  const std::string remedy =
      version < config_.snapshot_every
          ? std::string("no snapshot was taken yet")
          : fmt::format(
                "to go on after update {}, and without the {} since then, add "
                "--set strategy.resume={}",
                version - lost, lost, context_.folder);
  return FabricError(error.kind(), error.peer(), fmt::format("{}; {}", error.what(), remedy));
}

void Worker::leave() {
  try {
    for (Link& link : links_) {
      Request leaving;
      leaving.flags = Request::kLeave;
      link.request(leaving);
    }
    for (Link& link : links_) link.finish_sending();
  } catch (const FabricError& error) {  // the reason to leave is the other one
    context_.log.warn(error.what());
  }
}

void Worker::train() {
  ask(0);
  for (;;) {
    await_replies(context_.node.timeout_s(), by_layers_);
    const Reply reply = coordinator().reply();
    if (reply.kind != Reply::kCompute) await_replies();  // all of them
    if (reply.kind == Reply::kFinish) return finish_training();
    if (reply.kind == Reply::kEvaluate) {
      if (collects_ && !reply.task.on_snapshot) catch_up_with(reply.version);
      evaluate(reply.task, 0);
      continue;
    }
    if (collects_) await_version(reply.version);
    by_layers_ ? commit_late() : commit();
    if (!by_layers_) foresee_statistics({0, incoming_.size()});
    bound_ = reply.bound;
    forgiven_ = std::max(forgiven_, reply.forgiven);
    compute(reply.hand);
  }
}

// The remaining gradients belong to the next update, after the updates that all workers have read.
// A worker that has measured quality has read them too.
void Worker::finish_training() {
  finishes_ = true;
  if (!collects_ || accrued_steps_ == 0) return;
  await_version(coordinator().reply().version);
  await_replies();
  for (Link& link : links_) use(link);
}

// Nobody pushes any more: everybody gets the same parameters.
void Worker::finish() {
  if (accrued_steps_ > 0) {
    for (Link& link : links_) {
      push_whole(link, pull_request(link, Request::kFinal | Request::kPush), accrued_.span());
    }
  } else {
    ask(Request::kFinal);
  }
  await_replies();
  while (coordinator().reply().kind == Reply::kEvaluate) {
    const EvaluationTask task = coordinator().reply().task;
    evaluate(task, Request::kFinal);
    await_replies();
  }
  commit();
  take_final();
  say_goodbye();
}

// With replicas it wants an answer: a server that takes over must know of it as well.
void Worker::say_goodbye() {
  const bool answered = config_.replicas > 0;
  Request goodbye;
  goodbye.flags = Request::kGoodbye;
  if (answered) goodbye.flags |= Request::kPull | Request::kHeaderOnly;
  for (Link& link : links_) link.request(goodbye);
  if (!answered) {
    for (Link& link : links_) link.finish_sending();
    return;
  }
  // Nothing depends on it any more: whose end is not heard of is left behind.
  constexpr double kFarewell_s = 2;
  try {
    await_replies(kFarewell_s);
  } catch (const FabricError& error) {
    context_.log.warn(error.what());
  }
}

double Worker::occupancy() {
  { const PhaseScope now(context_.watch, Phase::kOther); }  // counts the phase that goes on, too
  const double busy_s =
      config_.consistency == "adaptive"
          ? context_.node.clock().busy_s()
          : context_.watch.seconds(Phase::kCompute) + context_.watch.seconds(Phase::kAggregate);
  const double now_s = context_.node.clock().now();
  const double share = now_s > asked_s_ ? (busy_s - busy_before_s_) / (now_s - asked_s_) : -1;
  busy_before_s_ = busy_s;
  asked_s_ = now_s;
  return std::min(1.0, share);
}

Request Worker::pull_request(const Link& link, uint32_t flags) const {
  Request request;
  request.flags = Request::kPull | always_ | flags;
  if (by_layers_ && !(flags & Request::kFinal)) request.flags |= Request::kLayers;
  request.bound = std::min(bound_, kMostBound);
  request.forgiven = forgiven_;
  request.wanted = collects_ && began_ ? link.version() + 1 : 0;
  if (flags & Request::kPush) {
    request.hand = accrued_hand_;
    request.steps = static_cast<int32_t>(accrued_steps_);
    request.samples = accrued_samples_;
  }
  return request;
}

void Worker::ask(uint32_t flags, const EvaluationShare& share) {
  for (Link& link : links_) {
    Request request = pull_request(link, flags);
    if (&link == &coordinator()) {
      request.occupancy = occupancy();
      request.share = share;
      if (share.id > 0) request.flags |= Request::kEvaluated;
    }
    link.request(request);
  }
}

void Worker::await_replies() { await_replies(context_.node.timeout_s()); }

// With `headers_only` the parameters may come later.
void Worker::await_replies(double timeout_s, bool headers_only) {
  struct Owner {
    Link* link;
    size_t index;
  };
  constexpr size_t kNotice = SIZE_MAX;  // not a reply, but what servers say about the chain
  std::vector<Handle> handles;
  std::vector<Owner> owners;
  const auto add = [&](Link& link) {
    for (size_t i = 0; i < link.handles().size(); ++i) {
      if (!link.handles()[i].pending() || (headers_only && i > 0)) continue;
      handles.push_back(std::move(link.handles()[i]));
      owners.push_back({&link, i});
    }
  };
  const auto drop = [&](const Link& link) {  // replies that will not come
    for (size_t i = 0; i < handles.size(); ++i)
      if (owners[i].link == &link && owners[i].index != kNotice && handles[i].pending())
        handles[i] = Handle();
  };
  const auto swap_notices = [&] {  // with the links, which use them when they talk to others
    for (size_t i = 0; i < handles.size(); ++i)
      if (owners[i].index == kNotice) std::swap(handles[i], owners[i].link->notice());
  };
  size_t awaited = 0;
  for (Link& link : links_)
    if (headers_only ? link.awaits_header() : link.awaits()) {
      add(link);
      if (link.has_heirs()) {
        handles.emplace_back();
        owners.push_back({&link, kNotice});
      }
      ++awaited;
    }
  swap_notices();
  PhaseScope scope(context_.watch, Phase::kWait);
  while (awaited > 0) {
    const auto [i, completion] = context_.node.endpoint().wait_any(handles, timeout_s);
    if (completion.state == State::kTimedOut) throw_late(links_, timeout_s);
    scope.change(Phase::kCommunicate);
    Link& link = *owners[i].link;
    if (owners[i].index == kNotice) {
      const bool turned = link.noticed(completion);
      std::swap(handles[i], link.notice());
      if (!turned || !link.awaits()) continue;
      drop(link);
      add(link);
      continue;
    }
    const bool lost = completion.state == State::kPeerLost && link.has_heirs();
    if (!lost && !link.ended(owners[i].index, completion) && !headers_only) continue;
    drop(link);
    if (!lost && link.reply().kind != Reply::kRepeat) {
      --awaited;
      continue;
    }
    swap_notices();
    lost ? link.turn_to_heir(completion.peer) : repeat(link);
    swap_notices();
    add(link);
  }
  swap_notices();
  record_step();
}

// Servers close steps one after the other, so one may have answered with the step before.
void Worker::await_version(int64_t version) {
  for (;;) {
    bool all = true;
    for (Link& link : links_) {
      if (link.reply().version >= version) continue;
      if (link.awaits()) await_replies();  // parameters that are too old
      Request request = pull_request(link, 0);
      request.wanted = version;
      link.request(request);
      all = false;
    }
    if (all) return;
    await_replies(context_.node.timeout_s(), by_layers_);
  }
}

// A worker that came back asks for any version, so a server whose step still lacks the gradient of
// a lost worker answers it at once. Quality is measured on the parameters after that step: the
// server must hear that this worker waits for them too, or it would never let another one repeat
// that gradient.
void Worker::catch_up_with(int64_t version) {
  await_version(version);
  await_replies();
}

// A step that does without late workers may be closed at a server before it answers this one. The
// step is that of the first server all the same: counted from a later one it might never close.
void Worker::use(Link& link) {
  link.use(collects_ ? coordinator().reply().version : link.reply().version);
}

void Worker::record_step() {
  if (!row_) return;
  row_->time_s = elapsed_s();
  row_->samples = coordinator().reply().samples;
  context_.recorder.step(*row_);
  row_.reset();
}

void Worker::commit() {
  PhaseScope scope(context_.watch, Phase::kCommunicate);
  if (!context_.node.clock().cost_only())
    for (const Link& link : links_) link.read(context_.model.parameters());
  context_.node.clock().charge(
      {.flops = 0, .memory_bytes = 8.0 * static_cast<double>(incoming_.size())});
  for (Link& link : links_) use(link);
  began_ = true;
}

}  // namespace tutti::parameter_server
