#include "strategies/scheduled/scheduler.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "core/bytes.h"
#include "core/error.h"
#include "fabric/exchange.h"
#include "strategies/scheduled/columns.h"
#include "strategies/scheduled/coordinates.h"
#include "strategies/scheduled/rounds.h"

namespace tutti {
namespace {

// Correlations are kept for as many features as this.
constexpr size_t kMostRemembered = 4096;

class Scheduler {
 public:
  Scheduler(Context& context, const ScheduledConfig& config)
      : context_(context),
        coordinates_(context.model.architecture().parameter_count - 1),
        plan_(context.task, context.data.splits.train.size(), coordinates_,
              static_cast<size_t>(config.parallel)),
        // Where only costs count there are no columns to look at.
        order_(context.arithmetic().is_done() ? config.schedule : CoordinateOrder::kCyclic),
        schedule_(order_, coordinates_, plan_.parallel(), config.conflict, context.task.seed,
                  [this](uint32_t a, uint32_t b) { return correlation(a, b); }),
        picked_(plan_.parallel()),
        progress_(context.task) {
    if (order_ != CoordinateOrder::kPriority) return;
    columns_.emplace(*context.data.dataset, context.data.splits.train, Range{0, coordinates_});
    if (coordinates_ <= kMostRemembered) known_.assign(coordinates_ * coordinates_, -1.0F);
  }

  void run() {
    for (int64_t round = 0; round < plan_.total(); ++round) {
      pick(static_cast<uint64_t>(round));
      hear(static_cast<uint64_t>(round));
      if (plan_.advance(progress_, round + 1) && round + 1 < plan_.total() &&
          !goes_on(static_cast<uint64_t>(round)))
        return;
    }
  }

 private:
  double correlation(uint32_t a, uint32_t b) {
    float* known =
        known_.empty() ? nullptr : &known_[std::min(a, b) * coordinates_ + std::max(a, b)];
    if (known && *known >= 0) return double{*known};
    const double result = columns_->correlation(a, b);
    context_.node.clock().charge(
        {.flops = 2.0 * static_cast<double>(columns_->samples()), .memory_bytes = 0});
    if (known) *known = static_cast<float>(result);
    return known ? double{*known} : result;
  }

  void pick(uint64_t round) {
    std::vector<uint32_t> picked;
    {
      PhaseScope scope(context_.watch, Phase::kCompute);
      picked = schedule_.pick(round);
      context_.node.clock().charge(
          {.flops = 10.0 * static_cast<double>(coordinates_), .memory_bytes = 0});
    }
    std::fill(picked_.begin(), picked_.end(), kNoCoordinate);
    std::copy(picked.begin(), picked.end(), picked_.begin());
    PhaseScope scope(context_.watch, Phase::kCommunicate);
    for (const Rank worker : context_.members)
      send(context_.node, worker, round_tag(round, RoundPart::kPick),
           bytes_of(std::span<const uint32_t>(picked_)));
  }

  // From each worker the objective and the changes of its coordinates, in the order picked.
  void hear(uint64_t round) {
    PhaseScope scope(context_.watch, Phase::kWait);
    std::vector<double> told(plan_.parallel() + 2);
    for (const Rank worker : context_.members) {
      Handle handle = context_.node.endpoint().receive(worker, round_tag(round, RoundPart::kChange),
                                                       writable_bytes_of(std::span(told)));
      const size_t count = finish(context_.node, handle) / sizeof(double);
      const Range own = part_of(coordinates_, context_.members.size(), static_cast<size_t>(worker));
      size_t next = 2;
      for (const uint32_t coordinate : picked_)
        if (coordinate >= own.begin && coordinate < own.end && next < count)
          schedule_.changed(coordinate, told[next++]);
      if (has_diverged(told[0], told[1]))
        throw DivergedError(fmt::format("the objective is {} at round {}", told[0], round + 1));
    }
  }

  bool goes_on(uint64_t round) {
    double answer = 0;
    PhaseScope scope(context_.watch, Phase::kWait);
    receive(context_.node, 0, round_tag(round, RoundPart::kGoOn),
            writable_bytes_of(std::span<double>(&answer, 1)));
    return answer != 0;
  }

  Context& context_;
  size_t coordinates_;
  RoundPlan plan_;
  CoordinateOrder order_;
  CoordinateSchedule schedule_;
  std::vector<uint32_t> picked_;
  TrainingProgress progress_;
  std::optional<Columns> columns_;
  std::vector<float> known_;  // correlations, by pair; negative: not computed yet
};

}  // namespace

void run_coordinate_scheduler(Context& context, const ScheduledConfig& config) {
  Scheduler(context, config).run();
}

}  // namespace tutti
