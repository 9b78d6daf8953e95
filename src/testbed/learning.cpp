#include "testbed/learning.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/isolated_run.h"
#include "core/quality.h"
#include "fabric/outcome.h"
#include "jobs/launcher.h"
#include "testbed/learning_cache.h"
#include "testbed/seed_data.h"

namespace tutti {

Learner learner_of(const LearningQuestion& question) {
  const Job& job = question.job;
  Learner learner{.job = with_settings(job, {}), .method = ""};
  Job& alone = learner.job;
  const std::string& equal = question.equivalence;
  if (!equal.empty()) {
    alone.strategy_kind = "solo";
    alone.strategy = make_strategy("solo");
    alone.strategy->fit(alone.cluster);
    learner.method = fmt::format("gradients of one worker, equal for the class \"{}\"", equal);
  } else {
    shrink_cluster(alone.cluster, question.most_workers);
    const int64_t computing = alone.cluster.workers, all = job.cluster.workers;
    learner.method =
        computing < all
            ? fmt::format("gradients of {} workers; that {} learn alike is assumed", computing, all)
        : all == 1 ? std::string("gradients of its only worker")
                   : fmt::format("gradients of all {} workers", all);
  }
  alone.task.stop_at_target = true;
  return learner;
}

Lesson learn(Job learner, const Data& data, const std::atomic<bool>& stop) {
  const Data own = data_of_seed(learner, data);
  const RunRecord record = launch(resolve(learner, own), {.out = "", .keep_files = false}, stop);
  if (record.exit_code == kExitInterrupted) throw InterruptedError();
  Lesson lesson;
  lesson.exit_code = record.exit_code;
  if (record.exit_code != kExitDone || record.nodes.empty()) return lesson;
  const bool higher = record.higher_is_better;
  for (const EvaluationRow& row : record.evaluations) {
    if (lesson.evaluations == 0 || is_better(row.quality, lesson.best_quality, higher))
      lesson.best_quality = row.quality;
    ++lesson.evaluations;
    lesson.reached = reaches(row.quality, learner.task.target, higher);
    if (!lesson.reached) continue;
    lesson.steps = static_cast<double>(row.step);
    lesson.time_s = row.time_s;
    break;
  }
  return lesson;
}

Learning nothing_learned(const LearningQuestion& question) {
  Learner learner = learner_of(question);
  Learning learning;
  learning.method = std::move(learner.method);
  learning.workers = learner.job.cluster.workers;
  learning.global_batch = question.job.task.global_batch;
  return learning;
}

Learning learned(Learning learning, const std::map<int, Lesson>& lessons) {
  double least = INFINITY, most = 0;
  for (const auto& [seed, lesson] : lessons) {
    ++learning.runs;
    if (lesson.exit_code == kExitDiverged)
      learning.failure = "its loss diverged";
    else if (lesson.exit_code != kExitDone)
      learning.failure = fmt::format("its run ended with exit code {}", lesson.exit_code);
    learning.best_quality += lesson.best_quality / static_cast<double>(lessons.size());
    if (!lesson.reached) continue;
    ++learning.reached;
    learning.steps += lesson.steps;
    learning.evaluations += lesson.evaluations;
    learning.reached_at.emplace_back(seed, std::llround(lesson.evaluations));
    least = std::min(least, lesson.steps);
    most = std::max(most, lesson.steps);
  }
  if (learning.reached > 0) {
    learning.steps /= learning.reached;
    learning.evaluations /= learning.reached;
    learning.error = (most - least) / 2 / learning.steps;
  }
  return learning;
}

std::vector<Learning> measure_learning(const std::vector<LearningQuestion>& questions,
                                       const Data& data, LearningCache& cache,
                                       const Announce& announce, const std::atomic<bool>& stop) {
  std::vector<std::map<int, Lesson>> lessons(questions.size());
  std::vector<IsolatedWork> works;
  std::vector<std::function<void(const std::string&)>> keep;  // what each of them returns
  std::vector<std::string> names;
  for (size_t i = 0; i < questions.size(); ++i) {
    const LearningQuestion& question = questions[i];
    Job learner = learner_of(question).job;
    for (int seed = 0; seed < question.seeds; ++seed) {
      learner.task.seed = question.job.task.seed + static_cast<uint64_t>(seed);
      if (const std::optional<KeptLesson> kept = cache.find(learner)) {
        lessons[i][seed] = kept->lesson;
        continue;
      }
      works.push_back([learner, &data](const std::atomic<bool>& raised) {
        return packed(learn(learner, data, raised));
      });
      keep.push_back([learner, i, seed, &cache, &lessons](const std::string& reply) {
        lessons[i][seed] = unpacked(reply);
        cache.keep(learner, lessons[i][seed]);
      });
      names.push_back(fmt::format("learning: {}, batch {}, seed {} of {}", question.job.name,
                                  question.job.task.global_batch, seed + 1, question.seeds));
    }
  }
  const std::vector<std::string> replies = run_side_by_side(
      "run", works,
      [&](size_t i) { announce(fmt::format("{} ({} of {})", names[i], i + 1, works.size())); },
      stop);
  for (size_t i = 0; i < replies.size(); ++i) keep[i](replies[i]);
  std::vector<Learning> answers;
  for (size_t i = 0; i < questions.size(); ++i)
    answers.push_back(learned(nothing_learned(questions[i]), lessons[i]));
  return answers;
}

std::string packed(const Lesson& lesson) {
  return {reinterpret_cast<const char*>(&lesson), sizeof lesson};
}

Lesson unpacked(const std::string& bytes) {
  Lesson lesson;
  TUTTI_CHECK(bytes.size() == sizeof lesson);
  std::memcpy(&lesson, bytes.data(), sizeof lesson);
  return lesson;
}

BatchCurve fit_batch_curve(std::vector<std::pair<double, double>> measured) {
  BatchCurve curve;
  curve.measured = std::move(measured);
  const auto n = static_cast<double>(curve.measured.size());
  if (n < 3) return curve;
  double x = 0, y = 0, xx = 0, xy = 0;  // x = 1/B, y = S
  for (const auto& [batch, steps] : curve.measured) {
    x += 1 / batch;
    y += steps;
    xx += 1 / batch / batch;
    xy += steps / batch;
  }
  const double slope = (n * xy - x * y) / (n * xx - x * x);
  const double intercept = (y - slope * x) / n;
  if (!(slope > 0)) return curve;
  // A fit may put the least number of steps at or below zero: then no batch measured was large
  // enough to waste samples, and the curve says only that.
  if (!(intercept > 0)) return curve;
  curve.least_steps = intercept;
  curve.critical_batch = slope / intercept;
  return curve;
}

}  // namespace tutti
