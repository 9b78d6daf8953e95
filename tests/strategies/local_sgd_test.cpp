// Local SGD against hand computations of its averages and its outer steps.
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/linear_reference.h"

namespace tutti {
namespace {

using namespace testing_support;

Settings two_workers(const std::string& fabric) {
  return {"strategy.kind=local_sgd", "cluster.fabric=" + fabric, "cluster.workers=2"};
}

// Two steps on each of two workers from the same start, and the averaged difference from it.
Vector difference_after_two(const LinearReference& reference, int64_t first, const Vector& start) {
  Vector difference(start.size());
  for (const int64_t worker : {0, 1}) {
    const Vector x = reference.stepped(first + 1, worker, reference.stepped(first, worker, start));
    for (size_t k = 0; k < x.size(); ++k) difference[k] += (start[k] - x[k]) / 2;
  }
  return difference;
}

TEST(LocalSgd, AveragesParametersEveryHSteps) {
  for (const char* fabric : {"virtual", "process"}) {
    const Settings settings =
        linear_task() + two_workers(fabric) + Settings{"strategy.sync_every=2", "task.max_steps=4"};
    const LinearReference reference(settings);
    Vector x = reference.initial();
    for (const int64_t first : {0, 2}) {
      const Vector difference = difference_after_two(reference, first, x);
      for (size_t k = 0; k < x.size(); ++k) x[k] -= difference[k];
    }
    expect_close(parameters_after(settings), x);
  }
}

// DiLoCo, by hand: b = mu b + d; x -= lr (d + mu b).
TEST(LocalSgd, OuterNesterovIsDiLoCo) {
  const Settings settings = linear_task() + two_workers("virtual") +
                            Settings{"strategy.sync_every=2", "task.max_steps=4",
                                     "strategy.outer={kind=\"nesterov\", lr=0.7, momentum=0.9}"};
  const LinearReference reference(settings);
  Vector x = reference.initial(), b(x.size());
  for (const int64_t first : {0, 2}) {
    const Vector d = difference_after_two(reference, first, x);
    for (size_t k = 0; k < x.size(); ++k) {
      b[k] = 0.9 * b[k] + d[k];
      x[k] -= 0.7 * (d[k] + 0.9 * b[k]);
    }
  }
  expect_close(parameters_after(settings), x);
}

TEST(LocalSgd, OuterAdamByHand) {
  const Settings settings = linear_task() + two_workers("virtual") +
                            Settings{"strategy.sync_every=2", "task.max_steps=4",
                                     "strategy.outer={kind=\"adam\", lr=0.05}"};
  const LinearReference reference(settings);
  Vector x = reference.initial(), m(x.size()), v(x.size());
  for (const int64_t round : {1, 2}) {
    const Vector d = difference_after_two(reference, 2 * (round - 1), x);
    for (size_t k = 0; k < x.size(); ++k) {
      m[k] = 0.9 * m[k] + 0.1 * d[k];
      v[k] = 0.999 * v[k] + 0.001 * d[k] * d[k];
      const auto t = static_cast<double>(round);
      x[k] -= 0.05 * (m[k] / (1 - std::pow(0.9, t))) /
              (std::sqrt(v[k] / (1 - std::pow(0.999, t))) + 1e-8);
    }
  }
  expect_close(parameters_after(settings), x);
}

// Streaming, by hand: two fragments of two parameters, each averaged every two steps, in turn; an
// average begun after step t is used after step t + 1, and half of a worker's own value is kept.
TEST(LocalSgd, FragmentsInTurnWithOverlapAndMixing) {
  const Settings settings =
      linear_task() + two_workers("virtual") +
      Settings{"strategy.sync_every=2", "task.max_steps=4", "strategy.fragments=2",
               "strategy.overlap=1", "strategy.mixing=0.5"};
  const LinearReference reference(settings);
  Vector global = reference.initial();
  Vector x[2] = {global, global};
  Vector pending;  // the averaged difference under way
  const auto begin = [&](size_t from) {
    pending.assign(2, 0);
    for (const Vector& own : x)
      for (size_t k = 0; k < 2; ++k) pending[k] += (global[from + k] - own[from + k]) / 2;
  };
  const auto use = [&](size_t from) {
    for (size_t k = 0; k < 2; ++k) {
      global[from + k] -= pending[k];
      for (Vector& own : x) own[from + k] = 0.5 * own[from + k] + 0.5 * global[from + k];
    }
  };
  // Fragment 0 begins after even steps, fragment 1 after odd ones.
  for (int64_t step = 0; step < 4; ++step) {
    for (const int64_t worker : {0, 1}) x[worker] = reference.stepped(step, worker, x[worker]);
    if (step >= 1) use(step % 2 == 1 ? 2 : 0);
    begin(step % 2 == 1 ? 0 : 2);
  }
  use(0);  // at the end: what is under way, and then what is older than the last step
  begin(2);
  use(2);
  expect_close(parameters_after(settings), global);
}

TEST(LocalSgd, PostLocalIsSynchronousUntilItIsNot) {
  const Settings common = linear_task() + Settings{"cluster.fabric=virtual", "cluster.workers=2",
                                                   "optimizer.kind=adam"};
  const auto local = [&](const std::string& epochs) {
    return parameters_after(common + Settings{"strategy.kind=local_sgd", "strategy.sync_every=3",
                                              "strategy.post_local=" + epochs});
  };
  const auto synchronous = parameters_after(common + Settings{"strategy.kind=allreduce"});
  // Averages of gradients and not of parameters: Adam tells them apart.
  expect_close(local("1"), Vector(synchronous.begin(), synchronous.end()));
  double distance = 0;
  const auto switched = local("0.5");
  for (size_t k = 0; k < switched.size(); ++k)
    distance = std::max(distance, std::abs(double{switched[k]} - double{synchronous[k]}));
  EXPECT_GT(distance, 1e-4);
}

TEST(LocalSgd, SendsAnHthOfTheBytes) {
  const auto bytes = [](const Settings& settings) {
    uint64_t sum = 0;
    for (const NodeReport& node : run(settings).nodes) sum += node.bytes_sent;
    return static_cast<double>(sum);
  };
  const Settings task = linear_task() + Settings{"cluster.fabric=virtual", "cluster.workers=4",
                                                 "task.data.features=400", "task.epochs=16",
                                                 "task.max_steps=64",      "task.eval_every=16",
                                                 "optimizer.lr=0.001"};
  const double synchronous = bytes(task + Settings{"strategy.kind=allreduce"});
  const double local = bytes(task + Settings{"strategy.kind=local_sgd", "strategy.sync_every=16"});
  EXPECT_GT(synchronous / local, 15);
  EXPECT_LT(synchronous / local, 16.01);
}

TEST(LocalSgd, EveryWorkerEndsWithTheSameParameters) {
  for (const char* fabric : {"virtual", "process"})
    checksum(logistic_task() + Settings{"cluster.fabric=" + std::string(fabric),
                                        "cluster.workers=3", "strategy.kind=local_sgd",
                                        "strategy.sync_every=5", "strategy.fragments=3",
                                        "strategy.overlap=2", "strategy.mixing=0.3"});
}

TEST(LocalSgd, RefusesWhatContradicts) {
  for (const Settings& bad : {Settings{"strategy.sync_every=2", "strategy.fragments=3"},
                              Settings{"strategy.sync_every=2", "strategy.overlap=2"},
                              Settings{"task.deterministic=true"}}) {
    const Job job = load_job("", linear_task() + two_workers("virtual") + bad);
    EXPECT_THROW(resolve(job), ConfigError) << bad[0];
  }
}

}  // namespace
}  // namespace tutti
