#include "strategies/balance.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/bytes.h"

namespace tutti {
namespace {

// Of what was just measured; the rest is what was measured before.
constexpr double kNewWeight = 0.5;

Group all_workers(const Context& context) {
  Group group{
      .ranks = {}, .index = static_cast<size_t>(context.node.endpoint().rank()), .racks = {}};
  for (Rank rank = 0; rank < context.cluster.workers; ++rank) group.ranks.push_back(rank);
  return group;
}

}  // namespace

Range part_by_shares(size_t count, std::span<const double> shares, size_t index) {
  const size_t workers = shares.size();
  if (count < workers) return part_of(count, workers, index);
  Range part;
  double sum = 0;
  for (size_t i = 0; i <= index; ++i) {
    sum += shares[i];
    const auto end = static_cast<size_t>(std::lround(sum * static_cast<double>(count)));
    part = {part.end, std::clamp(end, part.end + 1, count - (workers - 1 - i))};
  }
  if (index + 1 == workers) part.end = count;  // whatever rounding made of the sum
  return part;
}

// Finds the time in which all workers together finish a batch. Each has a fixed time to begin and a
// time for each sample, and all take equally long.
double Balance::most_samples(const PlanInput& input) {
  const ClusterConfig& cluster = input.cluster;
  struct Pace {
    double begin_s, sample_s;
  };
  std::vector<Pace> paces;
  const auto layers = 2 * static_cast<double>(input.architecture.layers.size());
  for (int64_t node = 0; node < cluster.workers; ++node) {
    double slowness = 1;
    for (const StragglerConfig& straggler : cluster.stragglers)
      if (straggler.kind == StragglerKind::kConstant &&
          (straggler.node < 0 || straggler.node == node))
        slowness *= straggler.factor;
    paces.push_back({slowness * overhead_of(cluster, node, 1, layers),
                     slowness * input.architecture.training_flops() / speed_of(cluster, node)});
  }
  const auto batch = static_cast<double>(input.task.global_batch);
  const auto done_in = [&](const Pace& pace, double step_s) {
    return std::clamp((step_s - pace.begin_s) / pace.sample_s, 1.0, batch);
  };
  double low_s = 0, high_s = INFINITY;
  for (const Pace& pace : paces) high_s = std::min(high_s, pace.begin_s + batch * pace.sample_s);
  for (int i = 0; i < 60; ++i) {  // enough for the precision of a double
    const double step_s = (low_s + high_s) / 2;
    double done = 0;
    for (const Pace& pace : paces) done += done_in(pace, step_s);
    (done < batch ? low_s : high_s) = step_s;
  }
  double most = 0;
  for (const Pace& pace : paces) most = std::max(most, done_in(pace, high_s));
  return most;
}

Balance::Balance(Context& context)
    : me_(static_cast<size_t>(context.node.endpoint().rank())),
      shares_(static_cast<size_t>(context.cluster.workers),
              1.0 / static_cast<double>(context.cluster.workers)),
      rates_(shares_.size()) {
  if (shares_.size() > 1)
    sum_ = make_all_reduce(context.node, &context.watch, tree(all_workers(context), rates_.size()),
                           kSumDouble);
}

Range Balance::part(size_t count) const { return part_by_shares(count, shares_, me_); }

void Balance::worked(size_t pieces, double seconds, uint64_t step) {
  pieces_ += static_cast<double>(pieces);
  seconds_ += seconds;
  if (sum_ && (step + 1) % kStepsBetween == 0) exchange(step);
}

void Balance::exchange(uint64_t step) {
  // Zeros and one value sum exactly, so all know the same rates.
  std::fill(rates_.begin(), rates_.end(), 0.0);
  rates_[me_] = seconds_ > 0 ? pieces_ / seconds_ : 0;
  pieces_ = seconds_ = 0;
  const Tag tag(Purpose::kControl, Tag::wrapped(step));
  sum_->start(writable_bytes_of(std::span<double>(rates_)), tag);
  sum_->finish();
  double all = 0;
  for (const double rate : rates_) all += rate;
  for (const double rate : rates_)
    if (!(rate > 0) || !std::isfinite(all)) return;  // somebody had nothing to do: keep the shares
  const double weight = std::exchange(measured_, true) ? kNewWeight : 1;
  for (size_t i = 0; i < shares_.size(); ++i) shares_[i] += weight * (rates_[i] / all - shares_[i]);
}

}  // namespace tutti
