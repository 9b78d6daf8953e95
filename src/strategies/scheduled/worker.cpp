#include "strategies/scheduled/worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "fabric/exchange.h"

namespace tutti {
namespace {

// Beside the samples, the change of |w|_1 and of |w|^2.
constexpr size_t kNorms = 2;
constexpr double kNearOptimum = 1e-4;  // of the objective

Rounds rounds_among(const Context& context, const std::string& name, size_t count) {
  Group group{.ranks = context.members,
              .index = static_cast<size_t>(context.node.endpoint().rank()),
              .racks = {}};
  return topology(name).rounds(group, count);
}

}  // namespace

CoordinateWorker::CoordinateWorker(Context& context, const ScheduledConfig& config)
    : context_(context),
      config_(config),
      samples_(context.data.splits.train.size()),
      weights_(context.model.parameters().size() - 1),
      own_(part_of(weights_.size(), context.members.size(),
                   static_cast<size_t>(context.node.endpoint().rank()))),
      plan_(context.task, samples_, weights_.size(), static_cast<size_t>(config.parallel)),
      penalty_{context.model.architecture().l1, context.model.architecture().l2},
      picked_(plan_.parallel()),
      change_(samples_ + kNorms),
      gathered_(2 * weights_.size()),
      progress_(context.task) {
  const bool exact = context.task.deterministic;
  if (exact) {
    rounded_.resize(samples_ + kNorms);
    exact_change_.resize(samples_ + kNorms);
  }
  if (context.members.size() > 1) {
    change_sum_ = make_all_reduce(context.node, &context.watch,
                                  rounds_among(context, config.topology, samples_ + kNorms),
                                  exact ? kSumExact : kSumDouble);
    gather_ = make_all_reduce(context.node, &context.watch,
                              rounds_among(context, config.topology, gathered_.size()), kSumDouble);
  }
  context.arithmetic().perform([&] {
    columns_.emplace(*context.data.dataset, context.data.splits.train, own_);
    residual_.assign(columns_->targets().begin(), columns_->targets().end());
    first_objective_ = objective();
  });
}

// It is 0 where only costs count.
double CoordinateWorker::objective() const {
  double squares = 0;
  for (const double value : residual_) squares += value * value;
  return squares / 2 / static_cast<double>(samples_) + penalty_.l1 * sizes_ +
         penalty_.l2 / 2 * squares_;
}

void CoordinateWorker::run() {
  started_s_ = context_.node.clock().now();
  for (int64_t round = 0; round < plan_.total(); ++round) {
    const auto number = static_cast<uint64_t>(round);
    receive_picks(number);
    update_own();
    sum_changes(number);
    tell_scheduler(number);
    const bool due = plan_.advance(progress_, round + 1);
    record();
    if (!due) continue;
    const bool stop = measure();
    if (round + 1 == plan_.total()) break;
    if (context_.node.endpoint().rank() == 0) {
      const double goes_on = stop ? 0 : 1;
      send(context_.node, static_cast<Rank>(context_.members.size()),
           round_tag(number, RoundPart::kGoOn), bytes_of(std::span<const double>(&goes_on, 1)));
    }
    if (stop) return;
  }
}

void CoordinateWorker::receive_picks(uint64_t round) {
  PhaseScope scope(context_.watch, Phase::kWait);
  receive(context_.node, static_cast<Rank>(context_.members.size()),
          round_tag(round, RoundPart::kPick), writable_bytes_of(std::span(picked_)));
}

// All of a round start from the same residual.
void CoordinateWorker::update_own() {
  context_.node.clock().begin_step();
  PhaseScope scope(context_.watch, Phase::kCompute);
  std::fill(change_.begin(), change_.end(), 0.0);
  std::fill(exact_change_.begin(), exact_change_.end(), ExactSum{});
  deltas_.clear();
  for (const uint32_t j : picked_) {
    if (j < own_.begin || j >= own_.end) continue;
    // Each coordinate takes a product with the residual and one with the column. A round counts as
    // a pass through one layer.
    context_.node.clock().charge({.flops = 4.0 * static_cast<double>(samples_),
                                  .memory_bytes = 0,
                                  .passes = deltas_.empty() ? 1.0 : 0.0,
                                  .layers = deltas_.empty() ? 1.0 : 0.0});
    deltas_.push_back(context_.arithmetic().value_of<double>([&] { return update_weight(j); }, 0));
  }
}

// Returns by how much. The change of the fit is added to that of the round.
double CoordinateWorker::update_weight(uint32_t j) {
  const double before = weights_[j];
  const double slope = columns_->dot(j, residual_) / static_cast<double>(samples_);
  const double after = best_weight(before, slope, columns_->mean_square(j), penalty_);
  const double delta = after - before;
  if (delta == 0) return 0;
  weights_[j] = after;
  const auto column = columns_->column(j);
  for (size_t i = 0; i < samples_; ++i) change_[i] += delta * column[i];
  change_[samples_] += std::abs(after) - std::abs(before);
  change_[samples_ + 1] += after * after - before * before;
  if (!context_.task.deterministic) return delta;
  // Term by term, so that it does not matter who adds which.
  for (size_t i = 0; i < change_.size(); ++i)
    rounded_[i] = static_cast<float>(std::exchange(change_[i], 0.0));
  accumulate(exact_change_, rounded_);
  return delta;
}

void CoordinateWorker::sum_changes(uint64_t round) {
  const bool exact = context_.task.deterministic;
  if (change_sum_) {
    change_sum_->start(
        exact ? writable_bytes_of(std::span(exact_change_)) : writable_bytes_of(std::span(change_)),
        Tag(Purpose::kGradient, Tag::wrapped(round)));
    change_sum_->finish();
  }
  PhaseScope scope(context_.watch, Phase::kAggregate);
  context_.node.clock().charge({.flops = 0, .memory_bytes = 24.0 * static_cast<double>(samples_)});
  context_.arithmetic().perform([&] {
    if (exact) {
      round_all(exact_change_, rounded_);
      std::copy(rounded_.begin(), rounded_.end(), change_.begin());
    }
    for (size_t i = 0; i < samples_; ++i) residual_[i] -= change_[i];
    sizes_ += change_[samples_];
    squares_ += change_[samples_ + 1];
  });
}

void CoordinateWorker::tell_scheduler(uint64_t round) {
  std::vector<double> told = {objective(), first_objective_};
  told.insert(told.end(), deltas_.begin(), deltas_.end());
  PhaseScope scope(context_.watch, Phase::kCommunicate);
  send(context_.node, static_cast<Rank>(context_.members.size()),
       round_tag(round, RoundPart::kChange), bytes_of(std::span<const double>(told)));
  if (has_diverged(told[0], told[1]))
    throw DivergedError(
        fmt::format("the objective is {} at round {}, from {} at first: coordinates that belong "
                    "together were updated at once; lower strategy.parallel, or use "
                    "strategy.schedule = \"priority\" with a lower strategy.conflict",
                    told[0], round + 1, told[1]));
}

void CoordinateWorker::record() {
  const double now_s = context_.node.clock().now() - started_s_;
  // All workers go through the samples together, each with its own weights, so only the first
  // counts them.
  if (context_.node.endpoint().rank() == 0)
    context_.recorder.trained(
        static_cast<size_t>(progress_.samples - context_.recorder.own_samples()));
  context_.recorder.applied({.round = progress_.whole_steps(), .staleness = 0, .age_s = 0});
  context_.recorder.step(progress_.step_row(now_s, objective(), 1));
}

// Every worker gets all weights, and with them the parameters of the model.
Optimality CoordinateWorker::exchange_weights(uint64_t rounds) {
  std::fill(gathered_.begin(), gathered_.end(), 0.0);
  {
    PhaseScope scope(context_.watch, Phase::kCompute);
    context_.node.clock().charge({.flops = 2.0 * static_cast<double>(own_.size() * samples_),
                                  .memory_bytes = 0,
                                  .passes = 1,
                                  .layers = 1});
    context_.arithmetic().perform([&] {
      for (size_t j = own_.begin; j < own_.end; ++j) {
        gathered_[j] = weights_[j];
        gathered_[weights_.size() + j] =
            columns_->dot(j, residual_) / static_cast<double>(samples_);
      }
    });
  }
  if (gather_) {
    gather_->start(writable_bytes_of(std::span(gathered_)),
                   Tag(Purpose::kParameters, Tag::wrapped(rounds)));
    gather_->finish();
  }
  if (!context_.arithmetic().is_done()) return {};
  const auto weights = std::span<const double>(gathered_).first(weights_.size());
  const std::span<float> parameters = context_.model.parameters();
  for (size_t j = 0; j < weights_.size(); ++j) parameters[j] = static_cast<float>(weights[j]);
  parameters[weights_.size()] = static_cast<float>(columns_->bias(weights));
  const auto slopes = std::span<const double>(gathered_).subspan(weights_.size());
  return optimality_of(weights, slopes, residual_, columns_->targets(), penalty_);
}

// Quality and distance from the optimum; true when that is near enough to stop.
bool CoordinateWorker::measure() {
  const int64_t rounds = progress_.whole_steps();
  const auto number = static_cast<uint64_t>(rounds);
  const Optimality found = exchange_weights(number);
  const Tag tag(Purpose::kEvaluation, Tag::wrapped(number), EvaluationPart::kValidation);
  Recorder& recorder = context_.recorder;
  const bool classification = context_.model.architecture().classification;
  const bool ends = progress_.evaluate(context_.task, classification, recorder, [&] {
    const Quality quality = evaluate_together(context_, context_.data.splits.validation, tag);
    return progress_.evaluation_row(context_.node.clock().now() - started_s_, quality);
  });
  if (!context_.arithmetic().is_done()) return false;
  const double share = found.objective > 0 ? found.gap / found.objective : 0;
  recorder.measure("objective", rounds, found.objective);
  recorder.measure("duality_gap", rounds, found.gap);
  recorder.figure("objective", found.objective);
  recorder.figure("duality_gap", found.gap);
  recorder.figure("kkt_violation", found.violation);
  recorder.figure("nonzero_weights", static_cast<double>(found.nonzero));
  if (near_optimum_ < 0 && share <= kNearOptimum) near_optimum_ = static_cast<double>(rounds);
  if (near_optimum_ >= 0) recorder.figure("rounds_to_optimum", near_optimum_);
  return (config_.gap > 0 && share <= config_.gap) || ends;
}

}  // namespace tutti
