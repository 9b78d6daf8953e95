#include "testbed/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "testbed/measured_records.h"
#include "testbed/places.h"

namespace tutti {
namespace {

// Times that are not simulated to their end are off by some per cent.
constexpr double kRough = 0.05;
// Of seeds, as long as no curve has two of them.
constexpr Spread kAssumedSpread = {.relative = 0.05, .freedom = 2};
// Times beyond so many times that of the first choice need not be exact.
constexpr double kFarBehind = 2;

// What one with that curve would have learned if it were this candidate.
Learning like(const Candidate& candidate, const std::map<int, double>& epochs_of_seeds) {
  Learning learning;
  for (const auto& [seed, epochs] : epochs_of_seeds) {
    const double evaluations = std::max(1.0, std::ceil(epochs / candidate.epochs_each - 1e-6));
    learning.reached_at.emplace_back(seed, std::llround(evaluations));
    learning.evaluations += evaluations / static_cast<double>(epochs_of_seeds.size());
  }
  learning.steps = learning.evaluations * candidate.steps_each;
  learning.reached = static_cast<int>(epochs_of_seeds.size());
  return learning;
}

double rough_s(const Candidate& candidate, double evaluations) {
  return candidate.whole_s * evaluations / candidate.evaluations;
}

// Those that take too long need not be exact. Whether one does depends on what is known now, not on
// when it was timed: the same knowledge gives the same times.
bool is_far_behind(double rough_time_s, double best_s) {
  return best_s > 0 && rough_time_s > kFarBehind * best_s;
}

std::map<int, double> epochs_of(const Curve& curve) {
  std::map<int, double> epochs;
  for (const auto& [seed, lesson] : curve.lessons)
    if (lesson.reached) epochs[seed] = lesson.evaluations * curve.epochs_each;
  return epochs;
}

// Half the width of the interval in which another seed lies, relative to their mean.
double error_of_epochs(const Curve& curve) {
  std::vector<double> epochs;
  for (const auto& [seed, value] : epochs_of(curve)) epochs.push_back(value);
  return half_width_of_next(spread_of(epochs).value_or(kAssumedSpread),
                            static_cast<int>(epochs.size()), curve.epochs_each / curve.epochs());
}

}  // namespace

bool Curve::reached() const { return !epochs_of(*this).empty(); }

double Curve::epochs() const {
  const std::map<int, double> all = epochs_of(*this);
  double sum = 0;
  for (const auto& [seed, epochs] : all) sum += epochs;
  return sum / static_cast<double>(all.size());
}

Candidate candidate_of(Choice choice, Plan plan, int64_t training_samples) {
  Candidate result;
  result.choice = std::move(choice);
  result.plan = std::move(plan);
  const TaskConfig& task = result.choice.job.task;
  const auto steps = static_cast<double>(std::max<int64_t>(1, result.plan.steps));
  const auto samples = static_cast<double>(std::max<int64_t>(1, training_samples));
  const double epochs = result.plan.samples > 0 ? static_cast<double>(result.plan.samples) / samples
                                                : static_cast<double>(task.epochs);
  result.steps_each = std::clamp(steps * task.eval_every / epochs, 1.0, steps);
  result.epochs_each = result.steps_each * epochs / steps;
  result.evaluations = std::max(1.0, std::floor(steps / result.steps_each + 1e-6));
  return result;
}

Candidates::Candidates(std::vector<Candidate> all, int seeds, int64_t most_workers,
                       Thoroughness how)
    : all_(std::move(all)), how_(how) {
  std::map<std::string, size_t> classes;
  for (Candidate& candidate : all_) {
    const std::string& equal = candidate.choice.equivalence;
    const auto known = classes.find(equal);
    candidate.curve = known == classes.end() ? curves_.size() : known->second;
    if (known != classes.end()) continue;
    if (!equal.empty()) classes[equal] = curves_.size();
    const int usual = equal.empty() && how == Thoroughness::kComplete ? 1 : 3;
    const LearningQuestion question{.job = candidate.choice.job,
                                    .equivalence = equal,
                                    .seeds = seeds > 0 ? seeds : usual,
                                    .most_workers = most_workers};
    curves_.push_back({.asked = question,
                       .unlearned = nothing_learned(question),
                       .epochs_each = candidate.epochs_each});
  }
  // Where no two of them learn alike, the first one shows how much seeds differ.
  if (classes.empty() && seeds <= 0 && !curves_.empty()) curves_.front().asked.seeds = 3;
}

void Candidates::take_from(const LearningCache& cache) {
  for (Curve& curve : curves_) {
    Job learner = learner_of(curve.asked).job;
    for (int seed = 0; seed < curve.asked.seeds; ++seed) {
      learner.task.seed = curve.asked.job.task.seed + static_cast<uint64_t>(seed);
      const std::optional<KeptLesson> kept = cache.find(learner);
      if (!kept) break;
      curve.lessons[seed] = kept->lesson;
      curve.begun.insert(seed);
      took_any_ = true;
      if (kept->from_another_cluster)
        curve.unlearned.method = "lessons of another cluster, where updates came in another order";
    }
  }
}

size_t Candidates::largest_curve() const {
  std::vector<size_t> members(curves_.size(), 0);
  for (const Candidate& candidate : all_) ++members[candidate.curve];
  return static_cast<size_t>(std::max_element(members.begin(), members.end()) - members.begin());
}

std::string Candidates::name_of(const Curve& curve) const { return curve.asked.job.name; }

Candidates::Knowledge Candidates::knowledge() const {
  Knowledge known;
  for (const Curve& curve : curves_) {
    if (!curve.reached()) continue;
    if (!known.fastest || curve.epochs() < known.fastest->epochs()) known.fastest = &curve;
  }
  if (known.fastest) known.fastest_error = error_of_epochs(*known.fastest);
  const Curve& largest = curves_[largest_curve()];
  known.source = largest.reached() ? &largest : known.fastest;
  bool steady = false;  // the first choice so far
  for (size_t i = 0; i < all_.size(); ++i) {
    if (!all_[i].simulated) continue;
    const Choice choice = choice_now(i, known);
    if (!choice.is_judged() || (steady && !choice.always_reaches())) continue;
    const bool first = known.best_s <= 0 || steady != choice.always_reaches();
    if (!first && choice.time_s() >= known.best_s) continue;
    steady = choice.always_reaches();
    known.best_s = choice.time_s();
    known.best_compute = choice.step.compute;
  }
  return known;
}

Choice Candidates::choice_now(size_t i) const {
  const Knowledge known = knowledge();
  return choice_now(i, known);
}

Choice Candidates::choice_now(size_t i, const Knowledge& known) const {
  const Candidate& candidate = all_[i];
  const Curve& own = curves_[candidate.curve];
  Choice choice = candidate.choice;
  if (!own.lessons.empty()) {
    choice.learning = learned(own.unlearned, own.lessons);
    choice.learning.method += candidate.takes_over;
  } else if (known.source) {
    choice.learning = like(candidate, epochs_of(*known.source));
    choice.assumed = fmt::format("it learns like {}", name_of(*known.source));
  } else {
    choice.learning = like(candidate, {{0, candidate.evaluations * candidate.epochs_each}});
    const int64_t epochs = choice.job.task.epochs;
    choice.assumed =
        epochs == 1 ? "it needs the whole epoch" : fmt::format("it needs all {} epochs", epochs);
  }
  if (!choice.assumed.empty()) choice.learning.method = "nothing yet; assumed: " + choice.assumed;
  choice.times_s.clear();
  if (!choice.reaches()) return choice;
  if (times_are_learned(candidate)) {
    for (const auto& [seed, lesson] : own.lessons)
      if (lesson.reached) choice.times_s.push_back(lesson.time_s);
    return choice;
  }
  choice.simulation_error = kRough;
  for (const auto& [seed, evaluation] : choice.learning.reached_at)
    choice.times_s.push_back(rough_s(candidate, static_cast<double>(evaluation)));
  const bool everything = how_ == Thoroughness::kComplete;
  if (candidate.timed_at == choice.learning.reached_at &&
      (everything || !is_far_behind(choice.time_s(), known.best_s))) {
    choice.times_s = candidate.times_s;
    choice.simulation_error = candidate.times_error;
  }
  return choice;
}

bool Candidates::times_are_learned(const Candidate& candidate) const {
  const Curve& curve = curves_[candidate.curve];
  const auto timed = [](const auto& entry) {
    return !entry.second.reached || entry.second.time_s > 0;
  };
  return curve.asked.equivalence.empty() && !curve.lessons.empty() &&
         candidate.choice.of_nodes == 0 &&
         curve.unlearned.workers == candidate.choice.job.cluster.workers &&
         std::all_of(curve.lessons.begin(), curve.lessons.end(), timed);
}

double Candidates::optimistic_s(const Candidate& candidate, const Knowledge& known) const {
  if (!known.fastest) return candidate.whole_s;
  return rough_s(candidate, std::max(1.0, known.fastest->epochs() / candidate.epochs_each));
}

bool Candidates::can_win(const Candidate& candidate, const Knowledge& known) const {
  if (how_ == Thoroughness::kComplete) return true;
  if (!candidate.choice.fits) return false;
  if (!known.fastest || known.best_s <= 0) return true;
  const double cost =
      (candidate.choice.step.compute - known.best_compute) * candidate.choice.cost_error;
  const double margin =
      std::hypot(cost, kNetworkValidation.mean_absolute_error, known.fastest_error) + kRough;
  return optimistic_s(candidate, known) <= known.best_s * (1 + margin);
}

std::vector<Choice> Candidates::ranked() const {
  const Knowledge known = knowledge();
  std::vector<Choice> choices;
  for (size_t i = 0; i < all_.size(); ++i) {
    if (!all_[i].simulated) continue;
    choices.push_back(choice_now(i, known));
    Choice& choice = choices.back();
    if (!known.fastest || choice.assumed.empty() || can_win(all_[i], known) || !choice.fits)
      continue;
    choice.left_out = fmt::format(
        "could not win even if it learned as fast as {}, in fewer epochs "
        "than all others so far",
        name_of(*known.fastest));
    choice.learning.method = "nothing: its learning was left out";
  }
  // Those that are assumed to learn like another one have seen no seeds.
  std::vector<Choice> judged;
  for (const Choice& choice : choices)
    if (choice.is_judged()) judged.push_back(choice);
  lend_spreads(judged);
  for (Choice& choice : choices) {
    choice.lent = judged.empty() ? std::nullopt : judged.front().lent;
    if (!choice.lent && how_ == Thoroughness::kWhatMatters) choice.lent = kAssumedSpread;
  }
  rank(choices);
  prefer_solo(choices);
  return choices;
}

std::vector<size_t> Candidates::curves_to_learn() const {
  const Knowledge known = knowledge();
  std::map<size_t, double> promise;  // by curve: the least time
  for (const Candidate& candidate : all_) {
    const Curve& curve = curves_[candidate.curve];
    const bool complete = how_ == Thoroughness::kComplete;
    const int wanted = complete ? curve.asked.seeds : 1;
    if (!candidate.simulated || std::ssize(curve.begun) >= wanted || !can_win(candidate, known))
      continue;
    const double least_s = complete ? 0 : optimistic_s(candidate, known);
    const auto [entry, fresh] = promise.emplace(candidate.curve, least_s);
    if (!fresh) entry->second = std::min(entry->second, least_s);
  }
  std::vector<size_t> curves;
  for (const auto& [curve, least_s] : promise) curves.push_back(curve);
  std::stable_sort(curves.begin(), curves.end(),
                   [&](size_t a, size_t b) { return promise[a] < promise[b]; });
  return curves;
}

std::vector<size_t> Candidates::curves_to_repeat(size_t few) const {
  if (how_ == Thoroughness::kComplete) return {};
  const std::vector<Choice> choices = ranked();
  const std::vector<Place> where = places(choices);
  std::vector<size_t> curves;
  for (size_t i = 0; i < where.size(); ++i) {
    if (i >= few && where[i].first > 1) continue;
    const auto candidate = std::find_if(all_.begin(), all_.end(), [&](const Candidate& c) {
      return c.choice.name == choices[i].name;
    });
    const Curve& curve = curves_[candidate->curve];
    if (std::ssize(curve.begun) < curve.asked.seeds &&
        std::find(curves.begin(), curves.end(), candidate->curve) == curves.end())
      curves.push_back(candidate->curve);
  }
  return curves;
}

std::vector<size_t> Candidates::to_be_timed() const {
  const Knowledge known = knowledge();
  std::vector<size_t> result;
  for (size_t i = 0; i < all_.size(); ++i) {
    const Candidate& candidate = all_[i];
    const Curve& curve = curves_[candidate.curve];
    if (!candidate.simulated || curve.lessons.empty()) continue;
    const bool complete = how_ == Thoroughness::kComplete;
    if (complete && std::ssize(curve.lessons) < curve.asked.seeds) continue;
    if (times_are_learned(candidate)) continue;
    const Choice choice = choice_now(i, known);
    if (!choice.reaches() || candidate.timing_at == choice.learning.reached_at) continue;
    if (complete || !is_far_behind(choice.time_s(), known.best_s)) result.push_back(i);
  }
  return result;
}

}  // namespace tutti
