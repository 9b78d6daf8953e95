// How long a task takes to learn, in steps: from runs with real gradients, on as many simulated
// nodes as this machine can compute for.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "jobs/job.h"

namespace tutti {

struct Learning {
  std::string method;   // how it was found, and what was taken over from smaller runs
  int64_t workers = 1;  // that computed
  int64_t global_batch = 0;
  int runs = 0, reached = 0;  // one run per seed
  double steps = 0;           // to the target: mean over the seeds that reached it
  double error = 0;           // relative: half the spread over the seeds
  double evaluations = 0;     // until then, likewise
  // Of each seed that reached it: how far from the job's own, and the evaluation that said so.
  std::vector<std::pair<int, int64_t>> reached_at;
  double best_quality = 0;  // mean over the seeds, of those that did not reach it too
  std::string failure;      // how a run ended that did not end well
};

// Says what is going on; called when a run begins.
using Announce = std::function<void(const std::string&)>;

struct LearningQuestion {
  Job job;                  // a candidate on its full cluster
  std::string equivalence;  // of its plan
  int seeds = 1;
  // Members of an equivalence class learn like one worker alone, who computes for them; others run
  // on at most so many.
  int64_t most_workers = 1;
};

// What one run says about a task.
struct Lesson {
  int64_t exit_code = 0;
  bool reached = false;
  double steps = 0, evaluations = 0;  // to the target
  double best_quality = 0;
  double time_s = 0;  // virtual, to the target, on the cluster that it was learned on
};

// The job that learns for a question, with the job's own seed, and how in words.
struct Learner {
  Job job;
  std::string method;
};
Learner learner_of(const LearningQuestion& question);
// Runs it, with the data of its seed; `data` is that of the job. Throws InterruptedError.
Lesson learn(Job learner, const Data& data, const std::atomic<bool>& stop);
// A lesson on its way from the process that learned.
std::string packed(const Lesson& lesson);
Lesson unpacked(const std::string& bytes);
// What is known before any lesson: how they are learned.
Learning nothing_learned(const LearningQuestion& question);
// What lessons say together, by how far their seeds are from the job's own.
Learning learned(Learning learning, const std::map<int, Lesson>& lessons);

// An answer to each, from the cache where that has it. Their runs go side by side on the cores of
// this machine.
class LearningCache;
std::vector<Learning> measure_learning(const std::vector<LearningQuestion>& questions,
                                       const Data& data, LearningCache& cache,
                                       const Announce& announce, const std::atomic<bool>& stop);

// Steps to the target against the global batch: S(B) = S_min (1 + B_c / B), the relation between
// data and steps that gradients with noise lead to. Below B_c twice the batch nearly halves the
// steps; above it the samples are wasted.
struct BatchCurve {
  std::vector<std::pair<double, double>> measured;  // batch, steps
  double least_steps = 0;                           // S_min
  double critical_batch = 0;                        // B_c
  bool valid() const { return least_steps > 0; }
  double steps(double batch) const { return least_steps * (1 + critical_batch / batch); }
};
// Least squares of S on 1/B. Invalid with fewer than 3 points or when the fit makes no sense.
BatchCurve fit_batch_curve(std::vector<std::pair<double, double>> measured);

}  // namespace tutti
