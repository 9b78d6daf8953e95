#include "testbed/tuning.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <tuple>

#include "core/error.h"
#include "core/quality.h"
#include "jobs/run_status.h"

namespace tutti {
namespace {

constexpr int64_t kMostTrials = 1000;
constexpr const char* kHowTo =
    "write e.g. --tune optimizer.lr=log:0.003:0.3, lin:1:4 or a list as 0.01,0.03,0.1";

[[noreturn]] void refuse(const std::string& text, const std::string& problem) {
  throw ConfigError("--tune", fmt::format("--tune {}: {}", text, problem));
}

double number_of(const std::string& text, const std::string& word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size() || !std::isfinite(value))
    refuse(text, fmt::format("'{}' is not a number; {}", word, kHowTo));
  return value;
}

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text)
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

// With three digits: what is found is written down by people.
double rounded(double value) { return std::stod(fmt::format("{:.3g}", value)); }

// How values lie between two ends.
enum class Spacing { kLog, kLinear };
constexpr auto words(Spacing) { return WordList<2>{"log", "lin"}; }

std::vector<double> grid(const std::string& text, const std::vector<std::string>& parts,
                         int64_t trials) {
  const bool log = says(parts[0], Spacing::kLog);
  if (parts.size() != 3) refuse(text, fmt::format("{}:A:B has two ends; {}", parts[0], kHowTo));
  const double a = number_of(text, parts[1]), b = number_of(text, parts[2]);
  if (log && (a <= 0 || b <= 0))
    refuse(text,
           "log needs ends above 0, since it tries values of equal ratios; raise them, or "
           "take lin");
  if (a >= b)
    refuse(text,
           fmt::format("there is nothing between {} and {}; write the smaller end first", a, b));
  if (trials < 2) refuse(text, "a range needs a --budget of at least 2: one trial for each end");
  std::vector<double> values = {a};
  for (int64_t i = 1; i + 1 < trials; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(trials - 1);
    values.push_back(rounded(log ? a * std::pow(b / a, share) : a + share * (b - a)));
  }
  values.push_back(b);
  return values;
}

std::string setting_of(const Tuning& tuning, double value) {
  return fmt::format("{}={}", tuning.key, value);
}

// Less is better.
auto rank_of(const RunFiles& run) {
  const RecordedQuality& quality = run.record.quality;
  const bool done = ended_well(run.record.status);
  const bool reached = done && run.record.time.to_target_s.has_value();
  const double last = quality.last.value_or(NAN);
  const double worse = quality.higher_is_better ? -last : last;
  return std::tuple(done ? 0 : 1, reached ? 0 : 1, reached ? *run.record.time.to_target_s : 0.0,
                    std::isfinite(worse) ? worse : INFINITY);
}

TuningTrial trial_of(double value, const RunFiles* run) {
  TuningTrial trial;
  trial.value = value;
  trial.status = run ? run->record.status : "refused";
  if (!run) return trial;
  const RecordedRun& record = run->record;
  if (ended_well(record.status)) trial.to_target_s = record.time.to_target_s;
  trial.quality = record.quality.last;
  trial.total_s = record.time.total_s;
  trial.energy_j = record.energy.joules;
  trial.wall_s = record.time.wall_s;
  trial.samples = record.samples;
  return trial;
}

void add(std::optional<double>& sum, const std::optional<double>& value) {
  if (value) sum = sum.value_or(0) + *value;
}

// Of those that measure this machine, what is simulated as well need not be tried again: it learns
// the same. Returns the index of who is tried, `i` itself for all others.
size_t tried_for(const std::vector<ComparedJob>& compared, size_t i) {
  const auto lesson = [&](size_t k) {
    return curve_class(compared[k].job, compared[k].plan.equivalence);
  };
  if (!runs_alone(compared[i].job) || lesson(i).empty()) return i;
  for (size_t k = 0; k < compared.size(); ++k)
    if (compared[k].refusal.empty() && !runs_alone(compared[k].job) && lesson(k) == lesson(i))
      return k;
  return i;
}

// One job for each strategy that is tried and each value.
struct Trials {
  std::vector<ComparedJob> jobs;
  std::vector<size_t> strategy;
  std::vector<double> value;
};

Trials trials_of(const std::vector<ComparedJob>& compared, const Tuning& tuning) {
  Trials trials;
  std::vector<std::string> settings;
  for (size_t i = 0; i < compared.size(); ++i) {
    if (!compared[i].refusal.empty() || tried_for(compared, i) != i) continue;
    for (const double value : tuning.values) {
      trials.jobs.push_back(compared[i]);
      trials.jobs.back().open.name += fmt::format("-{}", value);
      trials.strategy.push_back(i);
      trials.value.push_back(value);
      settings.push_back(setting_of(tuning, value));
    }
  }
  trials.jobs = planned_with(trials.jobs, settings);
  return trials;
}

// Every value is one that its strategy refuses.
[[noreturn]] void refuse_all(const Trials& trials, const Tuning& tuning) {
  const auto refused = std::find_if(trials.jobs.begin(), trials.jobs.end(),
                                    [](const ComparedJob& job) { return !job.refusal.empty(); });
  refuse(tuning.text(),
         fmt::format("no trial is possible: {}",
                     refused == trials.jobs.end() ? "there is none to compare" : refused->refusal));
}

ComparedTuning found_nothing(const Tuning& tuning) {
  return {.setting = tuning.key,
          .range = tuning.range,
          .seed = kTrialSeed,
          .value = tuning.values.front(),
          .at_edge = false,
          .tried_by = std::nullopt,
          .trials = {},
          .total_s = std::nullopt,
          .energy_j = std::nullopt,
          .wall_s = std::nullopt};
}

ComparedTuning best_of(const Trials& trials, const std::vector<const RunFiles*>& results,
                       size_t strategy, const Tuning& tuning) {
  ComparedTuning found = found_nothing(tuning);
  const RunFiles* best = nullptr;
  for (size_t t = 0; t < trials.jobs.size(); ++t) {
    if (trials.strategy[t] != strategy) continue;
    const double value = trials.value[t];
    found.trials.push_back(trial_of(value, results[t]));
    const TuningTrial& trial = found.trials.back();
    add(found.total_s, trial.total_s);
    add(found.energy_j, trial.energy_j);
    add(found.wall_s, trial.wall_s);
    if (!results[t] || (best && rank_of(*best) <= rank_of(*results[t]))) continue;
    best = results[t];
    found.value = value;
  }
  found.at_edge = tuning.values.size() > 1 &&
                  (found.value == tuning.values.front() || found.value == tuning.values.back());
  return found;
}

}  // namespace

Tuning parse_tuning(const std::string& text, std::optional<int64_t> budget) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    refuse(text, fmt::format("it has no setting or no range; {}", kHowTo));
  if (budget && (*budget < 1 || *budget > kMostTrials))
    throw ConfigError("--budget", fmt::format("--budget {}: must be 1 to {} trials for each "
                                              "strategy",
                                              *budget, kMostTrials));
  Tuning tuning{text.substr(0, equals), text.substr(equals + 1), {}};
  if (!tuning.key.starts_with("optimizer.") && !tuning.key.starts_with("strategy."))
    refuse(text, fmt::format("{} is the same for all that are compared; tune a setting of "
                             "[optimizer] or [strategy]",
                             tuning.key));
  const std::vector<std::string> parts = parts_of(tuning.range, ':');
  if (says(parts[0], Spacing::kLog) || says(parts[0], Spacing::kLinear)) {
    tuning.values = grid(text, parts, budget.value_or(kTrials));
  } else {
    for (const std::string& word : parts_of(tuning.range, ','))
      tuning.values.push_back(number_of(text, word));
    std::sort(tuning.values.begin(), tuning.values.end());
    if (budget && *budget != std::ssize(tuning.values))
      refuse(text, fmt::format("the list has {} values, which are as many trials, but --budget is "
                               "{}; leave out --budget",
                               tuning.values.size(), *budget));
  }
  if (std::adjacent_find(tuning.values.begin(), tuning.values.end()) != tuning.values.end())
    refuse(text,
           "two trials would have the same value; widen the range, lower --budget, or name "
           "each value once");
  return tuning;
}

void validate(const Tuning& tuning, const std::vector<ComparedJob>& compared,
              const std::vector<uint64_t>& seeds) {
  if (std::find(seeds.begin(), seeds.end(), kTrialSeed) != seeds.end())
    throw ConfigError("--seeds", fmt::format("--seeds: {} is the seed of the trials of --tune, "
                                             "which must not count; choose another one",
                                             kTrialSeed));
  std::vector<std::string> have, lack;
  std::string reason;
  for (const ComparedJob& candidate : compared) {
    if (!candidate.refusal.empty()) continue;
    if (candidate.job.cluster.cost_only)
      refuse(tuning.text(),
             "cluster.cost_only = true computes no gradients, so nothing tells which "
             "value is best; leave it out");
    try {
      for (const double value : tuning.values)
        with_settings(candidate.open, {setting_of(tuning, value)});
      have.push_back(candidate.job.name);
    } catch (const ConfigError& error) {
      lack.push_back(candidate.job.name);
      if (reason.empty()) reason = error.what();
    }
  }
  if (lack.empty()) return;
  const std::string remedy =
      have.empty()
          ? "`tutti list settings` has all there are"
          : fmt::format("compare those that have it alone: --strategies {}", fmt::join(have, ","));
  refuse(tuning.text(),
         fmt::format("{} cannot take it ({}); {}", fmt::join(lack, ", "), reason, remedy));
}

std::vector<std::optional<ComparedTuning>> tune(std::vector<ComparedJob>& compared,
                                                const Tuning& tuning, bool share_curves,
                                                const RunPlanned& run) {
  const Trials trials = trials_of(compared, tuning);
  const std::vector<PlannedRun> plan = plan_runs(trials.jobs, {kTrialSeed}, share_curves);
  if (plan.empty()) refuse_all(trials, tuning);
  const std::vector<RunFiles> files = run(plan);
  std::vector<const RunFiles*> results(trials.jobs.size());  // none: it is not possible
  for (size_t i = 0; i < plan.size(); ++i) results[plan[i].compared] = &files[i];

  std::vector<std::optional<ComparedTuning>> found(compared.size());
  for (size_t i = 0; i < compared.size(); ++i)
    if (compared[i].refusal.empty() && tried_for(compared, i) == i)
      found[i] = best_of(trials, results, i, tuning);
  std::vector<std::string> settings(compared.size());
  for (size_t i = 0; i < compared.size(); ++i) {
    if (!compared[i].refusal.empty()) continue;
    if (const size_t tried = tried_for(compared, i); tried != i) {
      found[i] = found_nothing(tuning);
      found[i]->value = found[tried]->value;
      found[i]->at_edge = found[tried]->at_edge;
      found[i]->tried_by = compared[tried].job.name;
    }
    settings[i] = setting_of(tuning, found[i]->value);
  }
  compared = planned_with(compared, settings);
  return found;
}

}  // namespace tutti
