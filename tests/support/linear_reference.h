// Linear regression in plain double arithmetic, for hand computations of what a strategy does: the
// gradient of one worker's share at any parameters, and nothing of the engine but its batches.
#pragma once

#include <cmath>

#include "data/batches.h"
#include "tests/support/parameters.h"

namespace tutti::testing_support {

using Vector = std::vector<double>;

inline Settings linear_task() {
  return {"task.data.kind=synthetic-linear",
          "task.data.samples=120",
          "task.data.features=3",
          "task.model=linear",
          "task.global_batch=16",
          "optimizer.kind=sgd",
          "optimizer.lr=0.1",
          "cluster.timeout=60"};
}

// The gradient of half the squared error, `scale` times the sum over the batch.
inline Vector linear_gradient(const Batch& batch, const Vector& x, double scale) {
  Vector result(x.size());
  const size_t features = x.size() - 1;
  for (size_t i = 0; i < batch.size(); ++i) {
    double error = x[features] - double{batch.targets[i]};
    for (size_t k = 0; k < features; ++k) error += x[k] * batch.features[i * features + k];
    for (size_t k = 0; k < features; ++k)
      result[k] += scale * error * batch.features[i * features + k];
    result[features] += scale * error;
  }
  return result;
}

class LinearReference {
 public:
  explicit LinearReference(const Settings& settings)
      : job_(load_job("", settings)),
        data_(load_data(job_.task.data, job_.task.seed, job_.base_dir)),
        batches_(data_.splits.train, job_.task.partition, job_.cluster.workers, job_.task.seed) {
    batches_.begin_epoch(0, job_.task.global_batch);
  }

  int64_t steps() const { return batches_.steps(); }  // of the first epoch

  Vector initial() const {
    const Architecture architecture = architecture_of(job_, data_);
    std::vector<float> values(architecture.parameter_count);
    initialise(architecture, job_.task.seed, values);
    return {values.begin(), values.end()};
  }

  // Of half the squared error, as the mean over the global batch times the number of workers.
  Vector gradient(int64_t step, int64_t worker, const Vector& x) const {
    Batch batch;
    data_.dataset->gather(batches_.share(step, worker), batch);
    return linear_gradient(batch, x,
                           static_cast<double>(job_.cluster.workers) /
                               static_cast<double>(batches_.count(step)));
  }

  // x after a step of plain SGD.
  Vector stepped(int64_t step, int64_t worker, const Vector& x) const {
    Vector result = x;
    const Vector g = gradient(step, worker, x);
    for (size_t k = 0; k < x.size(); ++k) result[k] -= job_.optimizer.lr * g[k];
    return result;
  }

 private:
  Job job_;
  Data data_;
  Batches batches_;
};

// Floats against doubles over a few steps: within a thousand roundings of the largest value.
inline void expect_close(const std::vector<float>& actual, const Vector& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  double largest = 1;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  for (size_t k = 0; k < expected.size(); ++k)
    EXPECT_NEAR(actual[k], expected[k], 1000 * std::ldexp(largest, -24)) << "parameter " << k;
}

}  // namespace tutti::testing_support
