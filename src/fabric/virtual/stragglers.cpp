#include "fabric/virtual/stragglers.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/random.h"

namespace tutti::simulation {
namespace {

bool concerns(const StragglerConfig& straggler, Rank rank, Rank workers) {
  return straggler.node < 0 ? rank < workers : straggler.node == rank;
}

// How many times slower a slow step is: mean `factor`, never below 1. All but fixed ones draw the
// excess over 1, so that their means are exact.
double draw(const StragglerConfig& straggler, Random& random) {
  const double excess = straggler.factor - 1;
  switch (straggler.distribution) {
    case Slowness::kUniform:
      return 1 + 2 * excess * random.uniform();
    case Slowness::kExponential:
      return 1 - excess * std::log1p(-random.uniform());
    case Slowness::kLognormal:
      return 1 + excess * std::exp(random.normal() - 0.5);  // deviation 1 of the logarithm
    case Slowness::kFixed:
      break;
  }
  return straggler.factor;
}

}  // namespace

Stragglers::Stragglers(const std::vector<StragglerConfig>& stragglers, Rank workers, uint64_t seed)
    : workers_(workers), seed_(seed) {
  for (const StragglerConfig& straggler : stragglers)
    (straggler.kind == StragglerKind::kPause ? pauses_ : slowing_).push_back(straggler);
  std::stable_sort(pauses_.begin(), pauses_.end(),
                   [](const auto& a, const auto& b) { return a.at_s < b.at_s; });
}

double Stragglers::slowdown(const StragglerConfig& straggler, size_t index, Rank rank,
                            uint32_t step, double now_s) const {
  if (!concerns(straggler, rank, workers_)) return 1;
  if (straggler.kind == StragglerKind::kConstant) return straggler.factor;
  if (straggler.kind == StragglerKind::kDrift) {
    const double reached =
        straggler.duration_s > 0 ? std::min(1.0, now_s / straggler.duration_s) : 1.0;
    return 1 + (straggler.factor - 1) * reached;
  }
  if (straggler.kind == StragglerKind::kWave) {
    const double waves = (now_s - straggler.at_s) / std::max(1e-9, straggler.duration_s);
    const double height =
        waves < 0 ? 0 : std::sin(2 * std::numbers::pi * (waves - std::floor(waves)));
    return 1 + (straggler.factor - 1) * std::max(0.0, height);
  }
  // Each straggler table has numbers of its own: the seed takes in its place in the job.
  Random random(seed_ + index, Stream::kStraggler, static_cast<uint32_t>(rank), step);
  return random.uniform() < straggler.probability ? draw(straggler, random) : 1;
}

Delayed Stragglers::delay(Rank rank, uint32_t step, double now_s, double work_s) const {
  Delayed delayed{work_s, 0};
  for (size_t i = 0; i < slowing_.size(); ++i)
    delayed.compute_s *= slowdown(slowing_[i], i, rank, step, now_s);

  double left_s = delayed.compute_s;
  for (const StragglerConfig& pause : pauses_) {
    const double end_s = pause.at_s + pause.duration_s;
    if (!concerns(pause, rank, workers_) || now_s >= end_s || now_s + left_s <= pause.at_s)
      continue;
    const double begin_s = std::max(now_s, pause.at_s);
    delayed.pause_s += end_s - begin_s;
    left_s -= begin_s - now_s;
    now_s = end_s;
  }
  return delayed;
}

}  // namespace tutti::simulation
