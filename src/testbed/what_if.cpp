#include "testbed/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/error.h"
#include "testbed/learning_cache.h"
#include "testbed/measured_records.h"
#include "testbed/time_to_target.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr size_t kMostRivals = 5;   // the others are too far behind to come first
constexpr double kMostPower = 4;    // of two: bandwidths from a sixteenth to sixteen times
constexpr double kCompression = 4;  // floats as bytes
constexpr double kCodecPasses = 6;  // over the parameters: find the scale, encode, decode

// Those that can come first at all: who misses the target with some seeds does not, unless all do.
std::vector<const Choice*> rivals_of(const std::vector<Choice>& choices) {
  std::vector<const Choice*> rivals;
  for (const Choice& choice : choices)
    if (choice.is_judged() && choice.always_reaches() == choices.front().always_reaches() &&
        rivals.size() < kMostRivals)
      rivals.push_back(&choice);
  return rivals;
}

Job with_bandwidth(const Choice& choice, double factor) {
  Job job = choice.open;
  job.cluster.bandwidth *= factor;
  return job;
}

}  // namespace

double WhatIf::time_of(const Choice& choice, const Job& job) const {
  // Planned anew: another cluster may have another best plan.
  const Resolved planned = resolve(job, task.data);
  return times_to_target(planned.job, planned.plan, choice.learning, task.data, kMostEffort / 8,
                         stop)
      .mean_s();
}

// The first choice stays first until another one is faster by more than networks are known to: who
// is tied with it does not come before it.
json WhatIf::bandwidth(const std::vector<Choice>& choices) const {
  const std::vector<const Choice*> rivals = rivals_of(choices);
  if (rivals.size() < 2) return {{"points", json::array()}, {"flips", json::array()}};
  const double now = rivals.front()->job.cluster.bandwidth;
  std::vector<std::vector<double>> times_s;  // of each power, of each rival
  for (double power = -kMostPower; power <= kMostPower; ++power) {
    announce(fmt::format("what if the network had {}",
                         human_quantity(now * std::exp2(power), Unit::kBytesPerSecond)));
    std::vector<double>& here = times_s.emplace_back();
    for (const Choice* rival : rivals)
      here.push_back(time_of(*rival, with_bandwidth(*rival, std::exp2(power))));
  }
  std::vector<size_t> first(times_s.size(), 0);  // among the rivals
  const auto follow = [&](size_t from, size_t to) {
    const std::vector<double>& here = times_s[to];
    const auto fastest = std::min_element(here.begin(), here.end());
    const bool overtaken =
        *fastest < here[first[from]] * (1 - kNetworkValidation.mean_absolute_error);
    first[to] = overtaken ? static_cast<size_t>(fastest - here.begin()) : first[from];
  };
  const size_t middle = times_s.size() / 2;
  for (size_t i = middle; i > 0; --i) follow(i, i - 1);
  for (size_t i = middle; i + 1 < times_s.size(); ++i) follow(i, i + 1);
  json points = json::array(), flips = json::array();
  for (size_t i = 0; i < times_s.size(); ++i) {
    const double factor = std::exp2(static_cast<double>(i) - kMostPower);
    json times;
    for (size_t k = 0; k < rivals.size(); ++k) times[rivals[k]->name] = times_s[i][k];
    points.push_back(
        {{"bandwidth", now * factor}, {"best", rivals[first[i]]->name}, {"times_s", times}});
    if (i == 0 || first[i] == first[i - 1]) continue;
    const Choice &below = *rivals[first[i - 1]], &above = *rivals[first[i]];
    flips.push_back({{"bandwidth", now * flip_between(below, above, factor / 2, factor)},
                     {"below", below.name},
                     {"above", above.name}});
  }
  return {{"points", points}, {"flips", flips}};
}

double WhatIf::flip_between(const Choice& below, const Choice& above, double low,
                            double high) const {
  for (int i = 0; i < 4; ++i) {
    const double middle = std::sqrt(low * high);
    const bool still_below = time_of(below, with_bandwidth(below, middle)) <
                             time_of(above, with_bandwidth(above, middle));
    (still_below ? low : high) = middle;
  }
  return std::sqrt(low * high);
}

json WhatIf::workers(const std::vector<Choice>& choices) const {
  json points = json::array();
  const std::vector<const Choice*> rivals = rivals_of(choices);
  if (rivals.empty()) return points;
  const auto whole = [](const Choice& choice) -> const ClusterConfig& {
    return choice.whole ? *choice.whole : choice.open.cluster;
  };
  int64_t most = 0;
  for (const Choice* rival : rivals) most = std::max(most, whole(*rival).workers);
  for (int64_t workers = 1; workers <= most;
       workers = workers < most ? std::min(2 * workers, most) : workers + 1) {
    announce(fmt::format("what if there were {} workers", workers));
    std::string best;
    double least_s = INFINITY;
    for (const Choice* rival : rivals) {
      if (whole(*rival).workers < workers) continue;
      Job job = rival->open;
      job.cluster = whole(*rival);
      shrink_cluster(job.cluster, workers);
      double time_s = 0;
      try {
        time_s = time_of(*rival, job);
      } catch (const ConfigError&) {
        continue;  // it cannot be so small
      }
      if (time_s >= least_s) continue;
      least_s = time_s;
      best = workers == 1 ? "alone" : rival->name;
    }
    if (!best.empty())
      points.push_back({{"workers", workers}, {"best", best}, {"time_s", least_s}});
  }
  return points;
}

json WhatIf::batch(const Choice& best) const {
  std::vector<Learning> measured = {best.learning};
  measured.front().global_batch = best.job.task.global_batch;
  json points = json::array(), missed = json::array();
  const auto samples = static_cast<int64_t>(task.data.splits.train.size());
  std::vector<LearningQuestion> questions;
  for (const double factor : {0.25, 0.5, 2.0, 4.0}) {
    Job job = best.job;
    job.task.global_batch =
        static_cast<int64_t>(std::llround(static_cast<double>(job.task.global_batch) * factor));
    if (job.task.global_batch < 1 || job.task.global_batch > samples) continue;
    // The linear scaling rule, unless the job follows it by itself.
    if (job.optimizer.schedule.base_batch == 0) job.optimizer.lr *= factor;
    questions.push_back({.job = job,
                         .equivalence = best.equivalence,
                         .seeds = 1,
                         .most_workers = best.learning.workers});
  }
  for (Learning& learning : measure_learning(questions, task.data, cache, announce, stop)) {
    if (learning.reached > 0)
      measured.push_back(std::move(learning));
    else
      missed.push_back(learning.global_batch);
  }
  std::sort(measured.begin(), measured.end(),
            [](const Learning& a, const Learning& b) { return a.global_batch < b.global_batch; });
  double least_s = INFINITY;
  int64_t fastest = best.job.task.global_batch;
  std::vector<std::pair<double, double>> steps_by_batch;
  for (const Learning& learning : measured) {
    Job job = best.open;
    job.task.global_batch = learning.global_batch;
    Choice choice = best;
    choice.learning = learning;
    const auto size = static_cast<double>(learning.global_batch);
    steps_by_batch.emplace_back(size, learning.steps);
    json point = {{"batch", size}, {"steps", learning.steps}};
    try {
      point["time_s"] = time_of(choice, job);
    } catch (const ConfigError& error) {
      point["time_s"] = json();  // fewer samples than workers
    }
    if (point["time_s"].is_number() && point["time_s"] < least_s) {
      least_s = point["time_s"];
      fastest = learning.global_batch;
    }
    points.push_back(point);
  }
  const BatchCurve curve = fit_batch_curve(steps_by_batch);
  return {{"points", points},
          {"missed", missed},
          {"fastest", fastest},
          {"time_s", std::isfinite(least_s) ? json(least_s) : json()},
          {"critical_batch", curve.valid() ? json(curve.critical_batch) : json()},
          {"least_steps", curve.valid() ? json(curve.least_steps) : json()},
          {"rate", "scaled with the batch (linear scaling rule), one seed each"}};
}

json WhatIf::compression(const Choice& best) const {
  announce("what if gradients were compressed");
  const double lighter_s = time_of(best, with_bandwidth(best, kCompression));
  const double bytes =
      static_cast<double>(task.architecture.parameter_count) * sizeof(float) * kCodecPasses;
  const double codec_s = best.learning.steps * bytes / best.job.cluster.memory_bandwidth;
  const double saved = 1 - (lighter_s + codec_s) / best.time_s();
  return {{"factor", kCompression},
          {"time_s", lighter_s + codec_s},
          {"codec_s", codec_s},
          {"saves", saved},
          {"pays", saved > 0.05}};
}

namespace {

// The least stages of a pipeline whose fullest node has room, with what that one needs.
std::optional<std::pair<size_t, double>> stages_that_fit(const Job& job, const Resolved& task) {
  for (size_t stages = 2; stages <= task.architecture.cuts().size() + 1; ++stages) {
    const Job split = with_settings(
        job, {"strategy={ kind = \"pipeline\" }", fmt::format("cluster.workers={}", stages)});
    try {
      const double bytes = resolve(split, task.data).plan.most_memory_bytes();
      if (bytes <= job.cluster.memory_bytes) return std::pair(stages, bytes);
    } catch (const ConfigError&) {
      continue;  // fewer samples in a batch than that takes
    }
  }
  return std::nullopt;
}

std::string split_in_words(const std::optional<std::pair<size_t, double>>& split) {
  if (!split) return "; no pipeline of its layers would fit";
  return fmt::format("; a pipeline of {} stages would fit, with {} on its fullest node",
                     split->first, human_quantity(split->second, Unit::kBytes));
}

}  // namespace

json memory_advice(const Choice& best, const Resolved& task) {
  const ClusterConfig& cluster = best.job.cluster;
  const auto data = static_cast<double>(task.data.dataset->memory_bytes());
  const double model = best.memory_bytes;
  const bool data_fits = data <= cluster.memory_bytes;
  const bool model_fits = model <= cluster.memory_bytes;
  std::string text;
  if (data_fits && model_fits)
    text = "data and model fit one node: parallelism is for speed alone";
  else if (model_fits)
    text = "the data does not fit one node: data parallelism keeps a share on each";
  else if (data_fits)
    text = "the model does not fit one node: it has to be split (model parallelism)";
  else
    text = "neither data nor model fits one node: both have to be split (hybrid parallelism)";
  if (!model_fits) text += split_in_words(stages_that_fit(best.job, task));
  return {
      {"data_bytes", data},     {"model_bytes", model},     {"node_bytes", cluster.memory_bytes},
      {"data_fits", data_fits}, {"model_fits", model_fits}, {"text", text}};
}

}  // namespace tutti
