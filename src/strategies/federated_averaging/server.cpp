#include "strategies/federated_averaging/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "strategies/averaging.h"
#include "strategies/federated_averaging/client_training.h"
#include "strategies/federated_averaging/server_optimizer.h"
#include "strategies/federated_averaging/split_record.h"
#include "strategies/parameter_layout.h"

namespace tutti::federated_averaging {
namespace {

constexpr double kNever_s = std::numeric_limits<double>::infinity();
// With nobody online in so many rounds nobody ever will be.
constexpr int64_t kMostEmptyRounds = 1'000'000;

}  // namespace

Server::Server(Context& context, const Config& config)
    : context_(context),
      node_(context.node),
      config_(config),
      split_(split_clients(context.data, config.split, client_count(config, context.cluster),
                           context.task.seed)),
      records_(split_.clients()),
      sampling_(config, static_cast<int64_t>(split_.clients()), context.task.seed),
      schedule_(context.optimizer, context.task.global_batch, context.task.epochs),
      parameters_(std::make_shared<Buffer<float>>(context.model.architecture().parameter_count)),
      optimizer_(make_server_optimizer(
          config.server, outer_layout_of(context.model.architecture(), {0, parameters_->size()}))),
      aggregation_(
          parameters_->size(), has_controls(config) ? 2 : 1, context.arithmetic(),
          [this](size_t place, std::span<const float> control) {
            if (controls_) update_control(round_->client(place), control);
          },
          context.model.architecture().statistics()),
      workers_(context, parameters_->size(), aggregation_, *this),
      progress_(context.task),
      started_s_(node_.clock().now()) {
  // Rounds count as steps. They may turn out shorter than this if clients drop out.
  if (context.task.max_steps > 0)
    schedule_.end_at(
        static_cast<double>(context.task.max_steps) *
        samples_in_round(config, context.task, context.cluster, context.data.splits.train.size()) /
        static_cast<double>(context.data.splits.train.size()));
  record_split(context_, split_);
  if (has_controls(config))
    controls_ = std::make_unique<ControlVariates>(parameters_->size(), context.arithmetic());
  on_vectors(context_, 2, parameters_->size(), [&] {
    context_.model.initial_values({0, parameters_->size()}, parameters_->span());
  });
}

// A client has the same weight in the mean of the control variates as in that of the models.
void Server::update_control(int64_t client, std::span<const float> control) {
  const size_t all = context_.data.splits.train.size();
  const auto own = static_cast<double>(split_.of(static_cast<size_t>(client)).size());
  controls_->update(client, control,
                    clients_count_alike(config_) ? 1 / static_cast<double>(split_.clients())
                                                 : own / static_cast<double>(all));
}

void Server::run() {
  workers_.listen();
  // Who comes later misses records.
  while (workers_.any({Workforce::kAbsent})) workers_.wait_for_news(kNever_s);
  try {
    while (!over() && !diverged_) {
      play_round();
      if (!diverged_ && (over() || progress_.is_due())) measure();
    }
  } catch (const DivergedError& error) {  // everybody is to hear of it
    context_.log.warn(error.what());
    diverged_ = true;
  }
  if (diverged_) end_diverged();
  finish_all();
}

void Server::count_samples(int64_t samples) {
  progress_.samples += samples;
  progress_.epochs = static_cast<double>(progress_.samples) /
                     static_cast<double>(context_.data.splits.train.size());
}

bool Server::over() const {
  const TaskConfig& task = context_.task;
  const auto all = task.epochs * static_cast<int64_t>(context_.data.splits.train.size());
  return progress_.ends_at_target(task) || progress_.samples >= all ||
         (task.max_steps > 0 && progress_.whole_steps() >= task.max_steps);
}

Round Server::draw_round() {
  std::vector<int64_t> drawn;
  for (int64_t empty = 0; drawn.empty(); ++empty) {
    if (empty == kMostEmptyRounds)
      throw ConfigError("strategy.availability",
                        fmt::format("no client was online in {} rounds; raise "
                                    "strategy.availability.share",
                                    kMostEmptyRounds));
    if (empty > 0) context_.recorder.count("rounds_without_clients");
    drawn = sampling_.draw(++number_);
  }
  std::vector<size_t> samples;
  samples.reserve(drawn.size());
  for (const int64_t client : drawn)
    samples.push_back(split_.of(static_cast<size_t>(client)).size());
  Round::Limits limits;
  const auto clients = static_cast<int64_t>(split_.clients());
  limits.wanted = std::min(drawn.size(), static_cast<size_t>(wanted_clients(config_, clients)));
  limits.quorum = static_cast<size_t>(config_.quorum);
  if (config_.deadline_s > 0) limits.closes_at_s = now_s() + config_.deadline_s;
  return {number_, std::move(drawn), samples, limits, !closes_early(config_)};
}

void Server::play_round() {
  Round round = draw_round();
  round_ = &round;
  rate_ = schedule_.rate(std::min(progress_.epochs, static_cast<double>(context_.task.epochs)));
  loss_sum_ = loss_samples_ = 0;
  aggregation_.begin(round.size());
  while (!round.over(now_s()) && !diverged_) {
    deal(round);
    workers_.wait_for_news(round.counts() ? round.closes_at_s() : kNever_s);
  }
  if (!diverged_) close(round);
  workers_.end_round();
  round_ = nullptr;
}

void Server::deal(Round& round) {
  for (const Rank rank : workers_.idle()) {
    const std::optional<size_t> place = round.next();
    if (!place) return;
    Order next;
    next.kind = Order::kTrain;
    next.round = round.number();
    next.client = round.client(*place);
    next.steps_before = records_[static_cast<size_t>(next.client)].steps;
    next.rate = rate_;
    Buffer<float> correction(controls_ ? parameters_->size() : 0);
    if (controls_)
      on_vectors(context_, 3, correction.size(),
                 [&] { controls_->correction(next.client, correction.span()); });
    workers_.assign(rank, *place);
    workers_.order(rank, next, parameters_, std::move(correction));
  }
}

void Server::close(Round& round) {
  charge_sum(aggregation_.close());
  if (controls_) controls_->close_round();
  const int64_t batch =
      batch_of_client(config_, context_.task, static_cast<int64_t>(split_.clients()));
  for (size_t place = 0; place < round.size(); ++place) {
    const auto client = static_cast<size_t>(round.client(place));
    if (!round.begun(place)) continue;
    records_[client].steps += steps_in_round(config_, split_.of(client).size(), batch);
  }
  const auto missing = static_cast<int64_t>(round.missing());
  if (missing > 0)
    context_.recorder.count(round.has_enough() ? "clients_surplus" : "clients_late", missing);
  context_.recorder.count("client_updates", static_cast<int64_t>(round.answers()));
  if (round.counts())
    update();
  else
    context_.recorder.count("rounds_failed");
  ++progress_.steps;
  context_.recorder.step(
      progress_.step_row(elapsed_s(), loss_samples_ > 0 ? loss_sum_ / loss_samples_ : 0, rate_));
}

void Server::update() {
  const size_t size = parameters_->size();
  // A new buffer: the old one may still be on its way to somebody who is late.
  auto next = std::make_shared<Buffer<float>>(size);
  bool finite = true;
  on_vectors(context_, 8, size, [&] {
    Buffer<float> gradient(size);
    finite = aggregation_.mean(gradient.span());
    for (size_t i = 0; i < size; ++i) gradient.data()[i] = -gradient.data()[i];
    std::copy_n(parameters_->data(), size, next->data());
    optimizer_->step(next->span(), gradient.span(), config_.server.lr);
  });
  parameters_ = std::move(next);
  if (finite) return;
  context_.log.warn(fmt::format("the average update of round {} is not finite", number_));
  diverged_ = true;
}

void Server::measure() {
  const bool classification = context_.model.architecture().classification;
  progress_.evaluate(context_.task, classification, context_.recorder, [&] {
    const size_t samples = context_.data.splits.validation.size();
    evaluator_.begin(samples, workers_.count_present(), true, progress_.evaluation_row(0, {}));
    std::optional<EvaluationRow> row;
    while (!(row = evaluator_.finish(elapsed_s(), classification, context_.arithmetic()))) {
      for (const Rank rank : workers_.idle()) {
        const auto task = evaluator_.take(rank, true);
        if (!task) break;
        Order next;
        next.kind = Order::kEvaluate;
        next.task = *task;
        workers_.order(rank, next, parameters_);
      }
      workers_.wait_for_news(kNever_s);
    }
    return *row;
  });
}

void Server::finish_all() {
  while (workers_.any({Workforce::kAbsent, Workforce::kIdle, Workforce::kBusy})) {
    for (const Rank rank : workers_.idle()) {
      Order last;
      last.kind = Order::kFinish;
      workers_.order(rank, last, parameters_);
    }
    workers_.wait_for_news(kNever_s);
  }
}

void Server::end_diverged() {
  while (workers_.any({Workforce::kIdle, Workforce::kBusy})) {
    for (const Rank rank : workers_.idle()) {
      Order last;
      last.kind = Order::kDiverged;
      workers_.order(rank, last);
      workers_.dismiss(rank);
    }
    if (workers_.any({Workforce::kBusy})) workers_.wait_for_news(kNever_s);
  }
  throw DivergedError("the loss of a client is not a finite number any more");
}

// Reads an update and the sum in double, writes the sum.
void Server::charge_sum(size_t updates) {
  node_.clock().charge(
      {.flops = 0, .memory_bytes = 20.0 * static_cast<double>(updates * parameters_->size())});
}

void Server::on_update(const Workforce::Work& work, const Report& report, size_t slot) {
  count_samples(report.samples);
  if (!work.place) return aggregation_.give_back(slot);  // too late
  const auto samples = static_cast<int64_t>(split_.of(static_cast<size_t>(report.client)).size());
  {
    PhaseScope scope(context_.watch, Phase::kAggregate);
    charge_sum(aggregation_.add(*work.place, slot,
                                weight_of(config_, context_.optimizer, samples, report.steps)));
  }
  loss_sum_ += report.loss * static_cast<double>(report.samples);
  loss_samples_ += static_cast<double>(report.samples);
  context_.recorder.applied(
      {.round = progress_.whole_steps() + 1, .staleness = 0, .age_s = now_s() - work.ordered_s});
  round_->answered();
}

void Server::on_dropped(const Workforce::Work& work, const Report& report) {
  count_samples(report.samples);
  context_.recorder.count("clients_dropped");
  if (!work.place) return;
  aggregation_.leave_out(*work.place);
  round_->dropped();
}

bool Server::on_evaluated(Rank from, const EvaluationShare& share) {
  return evaluator_.add(from, share);
}

void Server::on_gone(Rank rank, const Workforce::Work& work) {
  evaluator_.lose(rank);
  if (work.place) round_->put_back(*work.place);
}

}  // namespace tutti::federated_averaging
