#include "strategies/early_exit/exits.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "models/losses.h"

namespace tutti {
namespace {

// Thresholds tried for each exit: quantiles of the entropies that it has.
constexpr size_t kCandidates = 100;

std::vector<double> candidates_of(const std::vector<ExitVerdict>& verdicts) {
  std::vector<float> entropies;
  entropies.reserve(verdicts.size());
  for (const ExitVerdict& verdict : verdicts) entropies.push_back(verdict.entropy);
  std::sort(entropies.begin(), entropies.end());
  std::vector<double> candidates = {0};
  for (size_t i = 1; i <= kCandidates && !entropies.empty(); ++i) {
    const size_t place = std::min(entropies.size() - 1, i * entropies.size() / kCandidates);
    candidates.push_back(std::min(1.0, double{entropies[place]}));
  }
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  return candidates;
}

}  // namespace

double normalised_entropy(std::span<const float> scores) {
  const float highest = *std::max_element(scores.begin(), scores.end());
  double sum = 0, weighted = 0;
  for (const float score : scores) {
    const double below = static_cast<double>(score) - static_cast<double>(highest);
    const double power = std::exp(below);
    sum += power;
    weighted += power * below;
  }
  // -sum p log p with p = e^below / sum.
  const double entropy = std::log(sum) - weighted / sum;
  return std::clamp(entropy / std::log(static_cast<double>(scores.size())), 0.0, 1.0);
}

void judge(std::span<const float> scores, std::span<const int32_t> labels,
           std::span<ExitVerdict> verdicts) {
  TUTTI_CHECK(labels.size() == verdicts.size());
  if (labels.empty()) return;
  const size_t classes = scores.size() / labels.size();
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto own = scores.subspan(i * classes, classes);
    const auto label = labels.subspan(i, 1);
    verdicts[i] = {.entropy = static_cast<float>(normalised_entropy(own)),
                   .loss = static_cast<float>(cross_entropy(own, label, 1, {})),
                   .correct = static_cast<float>(count_correct(own, label))};
  }
}

double ExitTally::accuracy() const {
  double right = 0;
  for (const double count : correct) right += count;
  return samples > 0 ? right / samples : 0;
}

ExitTally tally(const Verdicts& verdicts, std::span<const double> thresholds,
                const ExitCosts& costs) {
  const size_t exits = verdicts.size();
  TUTTI_CHECK(exits > 0 && thresholds.size() + 1 == exits);
  ExitTally result;
  result.left.resize(exits);
  result.correct.resize(exits);
  for (size_t i = 0; i < verdicts[0].size(); ++i) {
    size_t exit = 0;
    for (; exit + 1 < exits; ++exit) {
      result.bytes += costs.answer_bytes[exit];
      if (leaves(verdicts[exit][i].entropy, thresholds[exit])) break;
      result.bytes += costs.forward_bytes[exit];
    }
    const ExitVerdict& verdict = verdicts[exit][i];
    result.left[exit] += 1;
    result.correct[exit] += double{verdict.correct};
    result.loss += double{verdict.loss};
    result.samples += 1;
  }
  return result;
}

std::vector<double> choose_thresholds(const Verdicts& verdicts, double tolerance,
                                      const ExitCosts& costs) {
  const size_t free = verdicts.size() - 1;
  std::vector<std::vector<double>> candidates;
  for (size_t exit = 0; exit < free; ++exit) candidates.push_back(candidates_of(verdicts[exit]));
  std::vector<double> best(free, 0.0), trial(free, 0.0);
  const ExitTally all_the_way = tally(verdicts, best, costs);
  const double least = all_the_way.accuracy() - tolerance - 1e-12;
  double best_bytes = all_the_way.bytes, best_accuracy = all_the_way.accuracy();
  std::vector<size_t> at(free, 0);
  for (bool more = free > 0; more;) {
    for (size_t exit = 0; exit < free; ++exit) trial[exit] = candidates[exit][at[exit]];
    const ExitTally result = tally(verdicts, trial, costs);
    const double accuracy = result.accuracy();
    if (accuracy >= least &&
        (result.bytes < best_bytes || (result.bytes == best_bytes && accuracy > best_accuracy))) {
      best = trial;
      best_bytes = result.bytes;
      best_accuracy = accuracy;
    }
    more = false;  // the next combination, like a counter
    for (size_t exit = 0; exit < free && !more; ++exit) {
      more = ++at[exit] < candidates[exit].size();
      if (!more) at[exit] = 0;
    }
  }
  return best;
}

}  // namespace tutti
