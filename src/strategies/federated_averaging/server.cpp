// Rounds and measurements; messages are in server_messages.cpp.
#include "strategies/federated_averaging/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "strategies/averaging.h"
#include "strategies/compute.h"
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
      parameters_(std::make_shared<Buffer<float>>(context.model.parameters().size())),
      optimizer_(make_server_optimizer(
          config.server, outer_layout_of(context.model.architecture(), {0, parameters_->size()}))),
      aggregation_(
          parameters_->size(), config.algorithm == "scaffold" ? 2 : 1,
          !context.node.clock().cost_only(),
          [this](size_t place, std::span<const float> control) {
            if (controls_) update_control(round_->client(place), control);
          },
          context.model.architecture().statistics()),
      workers_(static_cast<size_t>(context.cluster.workers)),
      progress_(context.task),
      started_s_(node_.clock().now()) {
  // Rounds count as steps. They may turn out shorter than this if clients drop out.
  if (context.task.max_steps > 0)
    schedule_.end_at(
        static_cast<double>(context.task.max_steps) *
        samples_in_round(config, context.task, context.cluster, context.data.splits.train.size()) /
        static_cast<double>(context.data.splits.train.size()));
  record_split(context_, split_);
  const bool arithmetic = !node_.clock().cost_only();
  if (config.algorithm == "scaffold")
    controls_ = std::make_unique<ControlVariates>(parameters_->size(), arithmetic);
  on_vectors(context_, 2, parameters_->size(), [&] {
    std::copy_n(context_.model.parameters().begin(), parameters_->size(), parameters_->data());
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
  handles_.emplace_back();
  owner_of_.push_back(kAnyRank);
  receive_report();
  while (any({Worker::kAbsent})) wait_for_news(kNever_s);  // who comes later misses records
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
    wait_for_news(round.counts() ? round.closes_at_s() : kNever_s);
  }
  if (!diverged_) close(round);
  for (Worker& worker : workers_) worker.place.reset();  // who is late works for nothing
  round_ = nullptr;
}

void Server::deal(Round& round) {
  for (const Rank rank : idle()) {
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
    worker(rank).place = place;
    order(rank, next, true, std::move(correction));
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
  context_.recorder.step(progress_.step_row(
      elapsed_s(), loss_samples_ > 0 ? loss_sum_ / loss_samples_ : 0, rate_));
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
  progress_.begin_evaluation(context_.task);
  const size_t samples = context_.data.splits.validation.size();
  evaluator_.begin(samples, count_present(), true, progress_.evaluation_row(0, {}));
  const bool classification = context_.model.architecture().classification;
  const bool cost_only = node_.clock().cost_only();
  std::optional<EvaluationRow> row;
  while (!(row = evaluator_.finish(elapsed_s(), classification, cost_only))) {
    for (const Rank rank : idle()) {
      const auto task = evaluator_.take(rank, true);
      if (!task) break;
      Order next;
      next.kind = Order::kEvaluate;
      next.task = *task;
      order(rank, next, true);
    }
    wait_for_news(kNever_s);
  }
  context_.recorder.evaluation(*row);
  progress_.end_evaluation(context_.task, classification, row->quality);
}

void Server::finish_all() {
  while (any({Worker::kAbsent, Worker::kIdle, Worker::kBusy})) {
    for (const Rank rank : idle()) {
      Order last;
      last.kind = Order::kFinish;
      order(rank, last, true);
    }
    wait_for_news(kNever_s);
  }
}

void Server::end_diverged() {
  while (any({Worker::kIdle, Worker::kBusy})) {
    for (const Rank rank : idle()) {
      Order last;
      last.kind = Order::kDiverged;
      order(rank, last, false);
      worker(rank).state = Worker::kDone;
    }
    if (any({Worker::kBusy})) wait_for_news(kNever_s);
  }
  throw DivergedError("the loss of a client is not a finite number any more");
}

}  // namespace tutti::federated_averaging
