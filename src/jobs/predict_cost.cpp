#include "jobs/predict_cost.h"

#include <algorithm>
#include <cmath>

namespace tutti {

double predicted_memory_bytes(const Job& job, const Architecture& architecture, size_t samples) {
  return job.strategy->memory_bytes({job.task, job.cluster, job.optimizer, architecture, samples});
}

int64_t predicted_steps(const Job& job, const Data& data) {
  if (const int64_t known = job.strategy->steps(job.task, data)) return known;
  const Schedule schedule(job.optimizer, job.task.global_batch, job.task.epochs);
  const auto samples = static_cast<int64_t>(data.splits.train.size());
  int64_t steps = 0;
  const double each =
      job.strategy->samples_per_step(job.task, job.cluster, data.splits.train.size());
  if (each > 0)
    steps = static_cast<int64_t>(
        std::ceil(static_cast<double>(job.task.epochs * samples) / each - 1e-9));
  for (int64_t epoch = 0; epoch < job.task.epochs && each <= 0; ++epoch) {
    const int64_t batch = std::clamp<int64_t>(schedule.global_batch(epoch), 1, samples);
    steps += (samples + batch - 1) / batch;
  }
  return job.task.max_steps > 0 ? std::min(steps, job.task.max_steps) : steps;
}

}  // namespace tutti
