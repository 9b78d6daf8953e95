#include "testbed/model_cost.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "core/bytes.h"
#include "jobs/plugins.h"
#include "jobs/reference_kernel.h"
#include "models/sparse_model.h"

namespace tutti {
namespace {

constexpr double kBudget_s = 1;
constexpr int64_t kLargestBatch = 64;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

ModelCost measure_model_cost(const Job& job, const Prepared& prepared) {
  using std::chrono::steady_clock;
  const Architecture& architecture = prepared.architecture;
  const bool some = architecture.row_width > 0 && architecture.parameter_count > kMostFlat;
  const size_t count = some ? 0 : architecture.parameter_count;
  Buffer<float> parameters(count), gradients(count);
  if (!some) initialise(architecture, job.task.seed, parameters.span());
  const auto model = load_models(architecture, 1)(
      architecture, {parameters.span(), gradients.span()}, {.seed = job.task.seed, .threads = 1});
  const std::vector<uint32_t>& train = prepared.data.splits.train;
  const auto share = static_cast<size_t>(std::clamp<int64_t>(
      job.task.global_batch / std::max<int64_t>(1, job.cluster.workers), 1, kLargestBatch));
  Batch batch;
  prepared.data.dataset->gather(std::span(train).first(std::min(share, train.size())), batch);

  if (some) {  // those that the batch touches
    std::vector<uint64_t> keys;
    touched_rows(architecture, batch, keys);
    dynamic_cast<SparseModel&>(*model).hold(keys);
    std::fill(model->parameters().begin(), model->parameters().end(), 0.0F);
  }

  std::vector<double> steps, kernels;
  const auto start = steady_clock::now();
  // At least twice: the first time, memory is touched and kernels are chosen.
  for (auto now = start;
       steps.size() < 2 || std::chrono::duration<double>(now - start).count() < kBudget_s;) {
    kernels.push_back(measure_reference_flops());
    const auto begin = steady_clock::now();
    model->gradient(batch, 1.0f, [](Range) {});
    now = steady_clock::now();
    steps.push_back(std::chrono::duration<double>(now - begin).count());
  }
  steps.erase(steps.begin());
  ModelCost cost;
  cost.sample_s = median(steps) / static_cast<double>(batch.size());
  cost.flops = architecture.training_flops() / cost.sample_s;
  cost.reference_flops = median(kernels);
  return cost;
}

ModelCost declared_model_cost(const Job& job, const Prepared& prepared) {
  const double flops = job.cluster.speed_flops;
  return {prepared.architecture.training_flops() / flops, flops, flops};
}

}  // namespace tutti
