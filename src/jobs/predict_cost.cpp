#include "jobs/predict_cost.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>

namespace tutti {

namespace {

// A batch that grows is largest in the last epoch, and never more than all samples.
int64_t largest_batch(const Job& job, size_t samples) {
  const Schedule schedule(job.optimizer, job.task.global_batch, job.task.epochs);
  const int64_t last = schedule.global_batch(job.task.epochs - 1);
  const int64_t most = samples > 0 ? static_cast<int64_t>(samples) : last;
  return std::max(job.task.global_batch, std::min(last, most));
}

// Nodes that join from elsewhere bring memory of their own.
std::optional<Shortage> shortage_of_machine(const Job& job, const Architecture& architecture,
                                            const std::vector<double>& needed) {
  // Of a sparse model a worker touches the rows that are in its data: all of them are a bound that
  // no run comes near.
  if (architecture.row_width > 0) return std::nullopt;
  const auto here = static_cast<int64_t>(needed.size()) - job.cluster.remote;
  const double sum =
      std::accumulate(needed.begin(), needed.begin() + std::max<int64_t>(0, here), 0.0);
  const double there = machine_memory_bytes();
  if (sum <= there) return std::nullopt;
  return Shortage{.worker = 0, .workers = here, .needed_bytes = sum, .there_bytes = there};
}

}  // namespace

double machine_memory_bytes() {
  double bytes =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  // Versions 2 and 1 of control groups, as a container sees its own; "max" and a file that is not
  // there are no numbers, and no limit.
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(path);
    if (double limit = 0; file >> limit && limit > 0) bytes = std::min(bytes, limit);
  }
  return bytes;
}

double predicted_memory_bytes(const Job& job, const Architecture& architecture, size_t samples) {
  TaskConfig task = job.task;
  task.global_batch = largest_batch(job, samples);
  return job.strategy->memory_bytes({task, job.cluster, job.optimizer, architecture, samples});
}

std::vector<double> predicted_memory_by_node(const Job& job, const Architecture& architecture,
                                             size_t samples) {
  TaskConfig task = job.task;
  task.global_batch = largest_batch(job, samples);
  const Plan plan{task, job.cluster, job.optimizer, architecture, samples};
  std::vector<double> bytes = job.strategy->memory_by_worker(plan);
  bytes.resize(job.strategy->roles(job.cluster).size(), job.strategy->server_memory_bytes(plan));
  return bytes;
}

std::optional<Shortage> shortage_of_memory(const Job& job, const Architecture& architecture,
                                           size_t samples) {
  TaskConfig task = job.task;
  task.global_batch = largest_batch(job, samples);
  const std::vector<double> needed =
      job.strategy->memory_by_worker({task, job.cluster, job.optimizer, architecture, samples});
  if (job.cluster.fabric != "virtual") return shortage_of_machine(job, architecture, needed);
  for (size_t i = 0; i < needed.size(); ++i) {
    const auto worker = static_cast<int64_t>(i);
    const double there = memory_of(job.cluster, worker);
    if (needed[i] > there)
      return Shortage{
          .worker = worker, .workers = 1, .needed_bytes = needed[i], .there_bytes = there};
  }
  return std::nullopt;
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

int64_t predicted_samples(const Job& job, const Data& data) {
  const size_t count = data.splits.train.size();
  if (job.strategy->steps(job.task, data) > 0 ||
      job.strategy->samples_per_step(job.task, job.cluster, count) > 0)
    return 0;
  const Schedule schedule(job.optimizer, job.task.global_batch, job.task.epochs);
  const auto samples = static_cast<int64_t>(count);
  int64_t total = 0, left = predicted_steps(job, data);
  for (int64_t epoch = 0; epoch < job.task.epochs && left > 0; ++epoch) {
    const int64_t batch = std::clamp<int64_t>(schedule.global_batch(epoch), 1, samples);
    const int64_t steps = (samples + batch - 1) / batch;
    total += std::min(samples, left * batch);  // the last batch of an epoch may be smaller
    left -= steps;
  }
  return total;
}

}  // namespace tutti
