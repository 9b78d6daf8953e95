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

namespace tutti {
namespace {

Job make_learner(const LearningQuestion& question, std::string& method) {
  const Job& job = question.job;
  Job learner = job;
  const std::string& equal = question.equivalence;
  if (!equal.empty()) {
    learner.strategy_kind = "solo";
    learner.strategy = make_strategy("solo");
    learner.strategy->fit(learner.cluster);
    method = fmt::format("gradients of one worker, equal for the class \"{}\"", equal);
  } else {
    shrink_cluster(learner.cluster, question.most_workers);
    method = learner.cluster.workers < job.cluster.workers
                 ? fmt::format("gradients of {} workers; that {} learn alike is assumed",
                               learner.cluster.workers, job.cluster.workers)
                 : fmt::format("gradients of all {} workers", learner.cluster.workers);
  }
  learner.task.stop_at_target = true;
  return learner;
}

// What one run says about a task.
struct Lesson {
  int exit_code = kExitDone;
  bool reached = false;
  double steps = 0, evaluations = 0;  // to the target
  double best_quality = 0;
};

Lesson learn(Job learner, const Data& data, const std::atomic<bool>& stop) {
  const RunRecord record = launch(resolve(learner, data), {.out = "", .keep_files = false}, stop);
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
    break;
  }
  return lesson;
}

Learning summary(Learning learning, const std::vector<Lesson>& lessons) {
  double least = INFINITY, most = 0;
  for (const Lesson& lesson : lessons) {
    const int seed = learning.runs++;
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

}  // namespace

std::vector<Learning> measure_learning(const std::vector<LearningQuestion>& questions,
                                       const Data& data, const Announce& announce,
                                       const std::atomic<bool>& stop) {
  std::vector<Learning> answers;
  std::vector<IsolatedWork> works;
  std::vector<std::string> names;
  for (const LearningQuestion& question : questions) {
    const Job& job = question.job;
    Learning answer;
    Job learner = make_learner(question, answer.method);
    answer.workers = learner.cluster.workers;
    answer.global_batch = job.task.global_batch;
    answers.push_back(std::move(answer));
    for (int seed = 0; seed < question.seeds; ++seed) {
      learner.task.seed = job.task.seed + static_cast<uint64_t>(seed);
      works.push_back([learner, &data](const std::atomic<bool>& raised) {
        const Lesson lesson = learn(learner, data, raised);
        return std::string(reinterpret_cast<const char*>(&lesson), sizeof lesson);
      });
      names.push_back(fmt::format("learning: {}, batch {}, seed {} of {}", job.name,
                                  job.task.global_batch, seed + 1, question.seeds));
    }
  }
  const std::vector<std::string> replies = run_side_by_side(
      "run", works,
      [&](size_t i) { announce(fmt::format("{} ({} of {})", names[i], i + 1, works.size())); },
      stop);
  auto reply = replies.begin();
  for (size_t i = 0; i < questions.size(); ++i) {
    std::vector<Lesson> lessons(static_cast<size_t>(questions[i].seeds));
    for (Lesson& lesson : lessons) {
      TUTTI_CHECK(reply->size() == sizeof lesson);
      std::memcpy(&lesson, (reply++)->data(), sizeof lesson);
    }
    answers[i] = summary(std::move(answers[i]), lessons);
  }
  return answers;
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
