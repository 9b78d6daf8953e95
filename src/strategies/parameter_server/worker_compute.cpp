// What a worker computes: gradients for its hand, those that somebody else left, evaluations.
#include <algorithm>

#include "core/error.h"
#include "strategies/compute.h"
#include "strategies/parameter_server/worker.h"
#include "strategies/shared_evaluation.h"

namespace tutti::parameter_server {

void Worker::compute(const Hand& hand) {
  for (Link& link : links_) link.finish_sending();
  if (config_.pull_every == 1) {
    if (config_.prefetch) ask_ahead();
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

void Worker::note_step(const LocalWorker::Result& result, double rate) {
  row_ = StepRow{
      .step = ++steps_, .loss = result.loss, .rate = rate, .samples = 0, .share = result.samples};
}

// Every step pulls: the gradients travel while the backward pass computes those of earlier layers.
void Worker::compute_and_push(const Hand& hand) {
  const bool exact = context_.task.deterministic;
  const LocalWorker::Place place = place_of(hand);
  accrued_hand_ = hand;
  accrued_steps_ = 1;
  accrued_samples_ = local_.samples_in(place);
  const auto begin = [&](Link& link, uint32_t flags) {
    Request request = pull_request(link, Request::kPush | flags);
    if (config_.prefetch) request.flags &= ~uint32_t{Request::kPull};
    if (&link == &coordinator()) request.occupancy = occupancy();
    exact ? send_whole(link, request, {}) : link.request(request);
  };
  LocalWorker::Result result;
  if (exact) {
    result = local_.exact_gradient(place, number_of(hand), sums_.span());
    await({0, incoming_.size()});  // it may have had no sample
    for (Link& link : links_) begin(link, 0);
  } else {
    bool begun = false;
    result = local_.gradient(place, number_of(hand), [&](Range range) {
      for (Link& link : links_)
        if (!begun && !link.shares()) begin(link, Request::kInParts);
      begun = true;
      push_pieces(range);
    });
    TUTTI_CHECK(begun);
    for (Link& link : links_)
      if (link.shares()) begin(link, Request::kOutbox);
  }
  accrued_steps_ = 0;
  note_step(result, timetable_.rate(hand));
}

void Worker::push_pieces(Range ready) {
  const std::span<const float> gradients = context_.model.gradients();
  for (size_t i = 0; i < links_.size(); ++i)
    for (size_t piece = 0; piece < pieces_[i].size(); ++piece) {
      const Range range = pieces_[i][piece];
      if (range.begin < ready.begin || range.end > ready.end) continue;
      if (links_[i].shares())
        links_[i].leave_gradients(range, gradients);
      else
        links_[i].send_gradients(piece, bytes_of(gradients.subspan(range.begin, range.size())));
    }
}

void Worker::push_whole(Link& link, Request request, std::span<const float> gradients) {
  if (!link.shares()) return send_whole(link, request, gradients);
  link.leave_gradients(link.range(), gradients);
  request.flags |= Request::kOutbox;
  link.request(request);
}

void Worker::send_whole(Link& link, const Request& request, std::span<const float> gradients) {
  link.request(request);
  const Range range = link.range();
  if (range.empty()) return;
  const std::span<const ExactSum> sums = sums_.span();
  link.send_gradients(0, sums.empty() ? bytes_of(gradients.subspan(range.begin, range.size()))
                                      : bytes_of(sums.subspan(range.begin, range.size())));
}

// Steps by the worker's own gradient, as the servers will, but the state of the optimizer comes
// from this worker's gradients only. Running statistics follow this worker's samples as if there
// were no others. What is pushed is then its share of their change, and the servers get the mean
// over all workers.
void Worker::step_alone(double rate, const LocalWorker::Result& result) {
  const std::span<float> g = context_.model.gradients();
  const auto all = static_cast<float>(static_cast<double>(result.count) /
                                      static_cast<double>(std::max<int64_t>(1, result.samples)));
  for (const Parameter& parameter : context_.model.architecture().parameters)
    for (size_t i = parameter.range.begin; parameter.running_rate > 0 && i < parameter.range.end;
         ++i)
      g[i] *= all;
  optimizer_->step(context_.model.parameters(), g, rate);
}

// The parameters that were just read lack what this worker and the others are about to push.
// Running statistics go most of their way to the data in so many steps: from where they were read
// they would go that way twice, and swing around the data for long. The worker takes its own
// unpushed part for that of everybody and starts from where the servers will be.
void Worker::foresee_statistics(Range read) {
  if (accrued_.size() == 0 || accrued_steps_ == 0 || context_.node.clock().cost_only()) return;
  const std::span<float> x = context_.model.parameters();
  const auto workers = static_cast<double>(context_.cluster.workers);
  for (const Parameter& parameter : context_.model.architecture().parameters) {
    if (parameter.running_rate == 0) continue;
    const auto factor = static_cast<float>(parameter.running_rate * workers);
    const size_t end = std::min(parameter.range.end, read.end);
    for (size_t i = std::max(parameter.range.begin, read.begin); i < end; ++i)
      x[i] -= factor * accrued_.data()[i];
  }
}

// Between pulls a worker goes on from its own steps, and keeps their gradients for the next push.
void Worker::compute_and_accrue(const Hand& hand, bool push) {
  record_step();
  const LocalWorker::Result result = local_.gradient(place_of(hand), number_of(hand), [](Range) {});
  const double rate = timetable_.rate(hand);
  {
    PhaseScope scope(context_.watch, Phase::kAggregate);
    if (push)
      for (Link& link : links_) link.finish_sending();
    const std::span<float> sum = accrued_.span();
    const std::span<const float> g = context_.model.gradients();
    if (!context_.node.clock().cost_only()) {
      for (size_t i = 0; i < sum.size(); ++i) sum[i] = accrued_steps_ > 0 ? sum[i] + g[i] : g[i];
      step_alone(rate, result);
    }
    context_.node.clock().charge(
        {.flops = 0, .memory_bytes = 12.0 * static_cast<double>(accrued_.size())});
    charge_update(context_, layout_);
  }
  accrued_hand_ = hand;
  ++accrued_steps_;
  accrued_samples_ += result.samples;
  note_step(result, rate);
  if (!push) return;
  for (Link& link : links_) {
    Request request = pull_request(link, Request::kPush);
    request.flags &= ~uint32_t{Request::kPull};
    push_whole(link, request, accrued_.span());
  }
  for (Link& link : links_) link.finish_sending();  // the next gradient is added to a fresh sum
  accrued_steps_ = accrued_samples_ = 0;
}

// A server lacks what a lost worker was to send. Its parameters are still the ones of this step.
void Worker::repeat(Link& link) {
  const Hand hand = link.reply().hand;
  TUTTI_CHECK(link.reply().version == link.version());
  for (Link& other : links_) other.finish_sending();
  for (Link& other : links_) other.secure_gradients();
  const LocalWorker::Result result =
      context_.task.deterministic
          ? local_.exact_gradient(place_of(hand), number_of(hand), sums_.span())
          : local_.gradient(place_of(hand), number_of(hand), [](Range) {});
  Request request = pull_request(link, Request::kPush | (finishes_ ? Request::kFinal : 0u));
  request.hand = hand;
  request.steps = hand.steps;
  request.samples = result.samples;
  // What lies in the window is not what belongs there: this one travels.
  send_whole(link, request, context_.model.gradients());
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
  await_replies();
  if (!context_.node.clock().cost_only())
    for (const Link& link : links_) link.read(context_.model.parameters());
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
