#include "strategies/parameter_server/worker.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "strategies/parameter_server/consistency.h"
#include "strategies/shared_evaluation.h"

namespace tutti::parameter_server {

Worker::Worker(Context& context, const Config& config)
    : context_(context),
      config_(config),
      timetable_(context.task, context.optimizer, context.data.splits.train.size()),
      local_(context, timetable_),
      terms_(make_consistency(config, context.cluster.workers)->collects(),
             pulls_layers(config) && context.model.architecture().row_width == 0, config.staleness),
      accrued_(context, config),
      occupancy_(context.node.clock(), context.watch, config),
      rows_(context),
      incoming_(context.model.parameters().size()),
      links_(context, config, incoming_.span(), rows_, [this](Link& link) { repeat(link); }),
      pushes_(context, links_, sum_),
      late_(context, links_, accrued_, [this] { ask(Request::kAhead); }) {
  if (context.task.deterministic) sum_.emplace(context, context.model.gradients());
}

void Worker::run() {
  try {
    train();
    finish();
  } catch (const DivergedError&) {
    links_.leave();
    throw;
  } catch (const FabricError& error) {
    if (config_.snapshot_every == 0 || context_.folder.empty() ||
        error.kind() != FabricError::Kind::kPeerLost || error.peer() < links_.first_server())
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

void Worker::train() {
  ask(0);
  for (;;) {
    links_.await(context_.node.timeout_s(), terms_.by_layers());
    const Reply reply = coordinator().reply();
    if (reply.kind != Reply::kCompute) links_.await();  // all of them
    if (reply.kind == Reply::kFinish) return finish_training();
    if (reply.kind == Reply::kEvaluate) {
      if (terms_.collects() && !reply.task.on_snapshot) catch_up_with(reply.version);
      evaluate(reply.task, 0);
      continue;
    }
    if (terms_.collects()) await_version(reply.version);
    terms_.by_layers() ? commit_late() : commit();
    if (!terms_.by_layers()) accrued_.foresee_statistics({0, incoming_.size()});
    terms_.hear(reply);
    compute(reply.hand);
  }
}

// The remaining gradients belong to the next update, after the updates that all workers have read.
// A worker that has measured quality has read them too.
void Worker::finish_training() {
  finishes_ = true;
  if (!terms_.collects() || accrued_.empty()) return;
  await_version(coordinator().reply().version);
  links_.await();
  for (Link& link : links_) use(link);
}

// Nobody pushes any more: everybody gets the same parameters.
void Worker::finish() {
  if (!accrued_.empty()) {
    for (Link& link : links_)
      pushes_.push(link, push_request(link, Request::kFinal), accrued_.sum());
  } else {
    ask(Request::kFinal);
  }
  links_.await();
  while (coordinator().reply().kind == Reply::kEvaluate) {
    const EvaluationTask task = coordinator().reply().task;
    evaluate(task, Request::kFinal);
    links_.await();
  }
  commit();
  take_final();
  links_.say_goodbye(config_.replicas > 0);
}

// A pull that pushes as well.
Request Worker::push_request(const Link& link, uint32_t flags) const {
  Request request = terms_.request(link, Request::kPush | flags);
  accrued_.describe(request);
  return request;
}

void Worker::ask(uint32_t flags, const EvaluationShare& share) {
  for (Link& link : links_) {
    Request request = terms_.request(link, flags);
    if (&link == &coordinator()) {
      request.occupancy = occupancy_.measure();
      request.share = share;
      if (share.id > 0) request.flags |= Request::kEvaluated;
    }
    link.request(request);
  }
}

// Servers close steps one after the other, so one may have answered with the step before.
void Worker::await_version(int64_t version) {
  for (;;) {
    bool all = true;
    for (Link& link : links_) {
      if (link.reply().version >= version) continue;
      if (link.awaits()) links_.await();  // parameters that are too old
      Request request = terms_.request(link, 0);
      request.wanted = version;
      link.request(request);
      all = false;
    }
    if (all) return;
    links_.await(context_.node.timeout_s(), terms_.by_layers());
  }
}

// A worker that came back asks for any version, so a server whose step still lacks the gradient of
// a lost worker answers it at once. Quality is measured on the parameters after that step: the
// server must hear that this worker waits for them too, or it would never let another one repeat
// that gradient.
void Worker::catch_up_with(int64_t version) {
  await_version(version);
  links_.await();
}

// A step that does without late workers may be closed at a server before it answers this one. The
// step is that of the first server all the same: counted from a later one it might never close.
void Worker::use(Link& link) {
  link.use(terms_.collects() ? coordinator().reply().version : link.reply().version);
}

void Worker::commit() {
  PhaseScope scope(context_.watch, Phase::kCommunicate);
  links_.read();
  context_.node.clock().charge(
      {.flops = 0, .memory_bytes = 8.0 * static_cast<double>(incoming_.size())});
  for (Link& link : links_) use(link);
  terms_.begin();
}

// With parameters that may come later.
void Worker::commit_late() {
  for (Link& link : links_) use(link);
  late_.begin();
  terms_.begin();
  local_.expect(late_.pending() ? &late_ : nullptr);
  if (!late_.pending()) late_.await({0, 0});
}

void Worker::compute(const Hand& hand) {
  links_.finish_sending();
  if (config_.pull_every == 1) {
    if (config_.prefetch) late_.ask_ahead();
    return compute_and_push(hand);
  }
  // The first step pushes, so a pull that is asked for in the last one lacks no push.
  const bool ahead = config_.prefetch && hand.steps > 1;
  Hand step = hand;
  step.steps = 1;
  for (int32_t i = 0; i < hand.steps; ++i, ++step.step) {
    if (ahead && i + 1 == hand.steps) ask(0);
    step = timetable_.normal(step);
    compute_and_accrue(step, i == 0);
  }
  if (!ahead) ask(0);
}

// Every step pulls: the gradients travel while the backward pass computes those of earlier layers.
void Worker::compute_and_push(const Hand& hand) {
  const bool exact = context_.task.deterministic;
  const LocalWorker::Place place = place_of(hand);
  accrued_.begin(hand, local_.samples_in(place));
  const auto begin = [&](Link& link, uint32_t flags) {
    Request request = push_request(link, flags);
    if (config_.prefetch) request.flags &= ~uint32_t{Request::kPull};
    if (&link == &coordinator()) request.occupancy = occupancy_.measure();
    exact ? pushes_.send(link, request, {}) : link.request(request);
  };
  LocalWorker::Result result;
  if (exact) {
    result = local_.exact_gradient(place, number_of(hand), *sum_);
    late_.await({0, incoming_.size()});  // it may have had no sample
    for (Link& link : links_) begin(link, 0);
  } else {
    bool begun = false;
    result = local_.gradient(place, number_of(hand), [&](Range range) {
      for (Link& link : links_)
        if (!begun && !link.shares()) begin(link, Request::kInParts);
      begun = true;
      pushes_.push_pieces(range);
    });
    TUTTI_CHECK(begun);
    for (Link& link : links_)
      if (link.shares()) begin(link, Request::kOutbox);
  }
  accrued_.clear();
  rows_.note(result, timetable_.rate(hand.epoch, hand.step));
}

// Between pulls a worker goes on from its own steps, and keeps their gradients for the next push.
void Worker::compute_and_accrue(const Hand& hand, bool push) {
  rows_.record(coordinator().reply().samples);
  const LocalWorker::Result result = local_.gradient(place_of(hand), number_of(hand), [](Range) {});
  const double rate = timetable_.rate(hand.epoch, hand.step);
  {
    PhaseScope scope(context_.watch, Phase::kAggregate);
    if (push) links_.finish_sending();
    accrued_.add(hand, result, rate);
  }
  rows_.note(result, rate);
  if (!push) return;
  for (Link& link : links_) {
    Request request = push_request(link, 0);
    request.flags &= ~uint32_t{Request::kPull};
    pushes_.push(link, request, accrued_.sum());
  }
  links_.finish_sending();  // the next gradient is added to a fresh sum
  accrued_.clear();
}

// A server lacks what a lost worker was to send. Its parameters are still the ones of this step.
void Worker::repeat(Link& link) {
  const Hand hand = link.reply().hand;
  TUTTI_CHECK(link.reply().version == link.version());
  links_.finish_sending();
  for (Link& other : links_) other.secure_gradients();
  const LocalWorker::Result result =
      context_.task.deterministic ? local_.exact_gradient(place_of(hand), number_of(hand), *sum_)
                                  : local_.gradient(place_of(hand), number_of(hand), [](Range) {});
  Request request = push_request(link, finishes_ ? Request::kFinal : 0u);
  request.hand = hand;
  request.steps = hand.steps;
  request.samples = result.samples;
  // What lies in the window is not what belongs there: this one travels.
  pushes_.send(link, request, context_.model.gradients());
}

// What an evaluation is measured on: the parameters that the servers kept for it, or the current
// ones, which came with the reply.
void Worker::read_for(const EvaluationTask& task, uint32_t) {
  if (!task.on_snapshot) return commit();
  for (Link& link : links_) {
    Request request;
    request.flags = Request::kPull | Request::kSnapshot;
    request.share.id = task.id;
    link.request(request);
  }
  links_.await();
  links_.read();
}

void Worker::evaluate(const EvaluationTask& task, uint32_t flags) {
  read_for(task, flags);
  const EvaluationSums sums =
      evaluate_chunks(context_, context_.data.splits.validation, task.begin, task.end, 1);
  const EvaluationShare share = share_of(task, sums);
  if (task.on_snapshot) return ask(flags, share);
  Request request;
  request.flags = Request::kPull | Request::kHeaderOnly | Request::kEvaluated | flags;
  request.share = share;
  coordinator().request(request);
}

}  // namespace tutti::parameter_server
