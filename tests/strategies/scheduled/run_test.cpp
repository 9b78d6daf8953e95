// Scheduled coordinate descent as a run: it finds the optimum, and how it gets there.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "core/error.h"
#include "models/linear.h"
#include "tests/support/parameters.h"

namespace tutti {
namespace {

using namespace testing_support;

// 64 features in groups of 8 with correlation 0.9, of which 8 matter.
Settings lasso_task() {
  return {"task.data.kind=synthetic-linear",
          "task.data.samples=300",
          "task.data.features=64",
          "task.data.correlation=0.9",
          "task.data.group=8",
          "task.data.informative=8",
          "task.data.noise=0.5",
          "task.model.kind=linear",
          "task.model.l1=0.05",
          "task.epochs=2000",
          "cluster.timeout=60"};
}

Settings scheduled(const std::string& schedule, int parallel, int workers,
                   const std::string& fabric) {
  return {"strategy.kind=scheduled",
          "strategy.schedule=" + schedule,
          "strategy.parallel=" + std::to_string(parallel),
          "strategy.conflict=0.3",
          "cluster.workers=" + std::to_string(workers),
          "cluster.fabric=" + fabric};
}

double figure(const RunRecord& record, const std::string& name) {
  const auto& figures = record.nodes.at(0).extra.figures;
  const auto found = figures.find(name);
  return found == figures.end() ? NAN : found->second;
}

// The problem as the task states it, in plain double arithmetic with an explicit bias.
struct Lasso {
  size_t features = 0;
  Batch all;
  double l1 = 0, l2 = 0;

  explicit Lasso(const Settings& settings) {
    Job job = load_job("", settings);
    const Data data = load_data(job.task.data, job.task.seed, job.base_dir);
    data.dataset->gather(data.splits.train, all);
    features = all.features.size() / all.size();
    l1 = job.task.model.design.get<LinearModel>().l1;
    l2 = job.task.model.design.get<LinearModel>().l2;
  }
  double x(size_t i, size_t j) const { return double{all.features[i * features + j]}; }
  std::vector<double> residual(const std::vector<double>& w) const {
    std::vector<double> r(all.size());
    for (size_t i = 0; i < r.size(); ++i) {
      r[i] = double{all.targets[i]} - w[features];
      for (size_t j = 0; j < features; ++j) r[i] -= w[j] * x(i, j);
    }
    return r;
  }
  double objective(const std::vector<double>& w) const {
    double sum = 0;
    for (const double value : residual(w)) sum += value * value / 2;
    sum /= static_cast<double>(all.size());
    for (size_t j = 0; j < features; ++j) sum += l1 * std::abs(w[j]) + l2 / 2 * w[j] * w[j];
    return sum;
  }
  // By accelerated proximal gradients (Beck and Teboulle, 2009): another way than the engine's.
  std::vector<double> solved(int steps) const {
    double largest = 1;  // a bound on the curvature: the trace
    for (const float value : all.features) largest += double{value} * double{value};
    const double rate = static_cast<double>(all.size()) / largest;
    std::vector<double> w(features + 1), y = w;
    double t = 1;
    for (int step = 0; step < steps; ++step) {
      const std::vector<double> r = residual(y), before = w;
      for (size_t j = 0; j <= features; ++j) {
        double slope = 0;
        for (size_t i = 0; i < r.size(); ++i) slope -= r[i] * (j < features ? x(i, j) : 1);
        slope /= static_cast<double>(r.size());
        if (j < features) slope += l2 * y[j];
        const double moved = y[j] - rate * slope, beyond = std::abs(moved) - rate * l1;
        w[j] = j == features ? moved : beyond > 0 ? std::copysign(beyond, moved) : 0;
      }
      const double next = (1 + std::sqrt(1 + 4 * t * t)) / 2;
      for (size_t j = 0; j <= features; ++j) y[j] = w[j] + (t - 1) / next * (w[j] - before[j]);
      t = next;
    }
    return w;
  }
};

// At an optimum the gradient by each weight is -+l1, or within that at 0. Weights that are off the
// optimal objective by `gap` can miss it by sqrt(2 a gap) where a is the curvature, at most 2 here:
// more would let one coordinate alone gain more than the gap. Rounding 64 weights below 4 to floats
// moves a gradient by at most 64 x 4 x 2 x 2^-24.
TEST(Scheduled, SatisfiesTheConditionsOfAnOptimum) {
  for (const Settings& penalty : {Settings{}, Settings{"task.model.l2=0.1"}}) {
    const Settings job = lasso_task() + penalty + scheduled("priority", 8, 2, "virtual") +
                         Settings{"strategy.gap=1e-10"};
    const Lasso lasso(job);
    const std::vector<float> found = parameters_after(job);
    const std::vector<double> w(found.begin(), found.end());
    const double bound =
        std::sqrt(2 * 2 * 1e-10 * lasso.objective(w)) + 64 * 4 * 2 * std::ldexp(1.0, -24);
    const std::vector<double> r = lasso.residual(w);
    size_t zeros = 0;
    for (size_t j = 0; j <= lasso.features; ++j) {
      double slope = 0;
      for (size_t i = 0; i < r.size(); ++i)
        slope += r[i] * (j < lasso.features ? lasso.x(i, j) : 1);
      slope /= static_cast<double>(r.size());
      if (j == lasso.features) {
        EXPECT_LE(std::abs(slope), bound) << "bias";
        continue;
      }
      slope -= lasso.l2 * w[j];
      zeros += w[j] == 0;
      if (w[j] == 0) {
        EXPECT_LE(std::abs(slope), lasso.l1 + bound) << j;
      } else {
        EXPECT_NEAR(slope, std::copysign(lasso.l1, w[j]), bound) << j;
      }
    }
    EXPECT_GT(zeros, 20u) << "a sparse solution";
  }
}

// Both are above the optimum by less than the gap, or what the slower method is off after as many
// steps: 2 |w|^2 / (rate steps^2).
TEST(Scheduled, FindsWhatAnotherMethodFinds) {
  const Settings job =
      lasso_task() + scheduled("priority", 8, 3, "virtual") + Settings{"strategy.gap=1e-8"};
  const Lasso lasso(job);
  const std::vector<float> found = parameters_after(job);
  const double ours = lasso.objective({found.begin(), found.end()});
  const double theirs = lasso.objective(lasso.solved(4000));
  EXPECT_NEAR(ours, theirs, 1e-4 * theirs);
  const RunRecord record = run(job);
  EXPECT_NEAR(figure(record, "objective"), ours, 1e-6 * ours) << "as it is recorded";
}

TEST(Scheduled, SoftThresholdsOrthogonalFeaturesInOneRound) {
  const TemporaryFolder folder;
  std::ofstream file(folder / "hadamard.csv");
  const int targets[] = {3, -1, 4, 1, -5, 9, 2, -6};
  std::vector<double> products(7);
  for (int row = 0; row < 8; ++row) {
    for (int j = 1; j <= 7; ++j) {
      const int value = __builtin_popcount(static_cast<unsigned>(row & j)) % 2 ? -1 : 1;
      file << value << ",";
      products[static_cast<size_t>(j - 1)] += value * targets[row] / 8.0;
    }
    file << targets[row] << "\n";
  }
  file.close();
  for (const char* schedule : {"priority", "random", "cyclic"}) {
    const std::vector<float> found = parameters_after(
        Settings{"task.data.kind=csv", "task.data.path=" + (folder / "hadamard.csv"),
                 "task.data.regression=true", "task.data.standardise=false", "task.data.header=no",
                 "task.data.validation=0", "task.data.test=0", "task.global_batch=8",
                 "task.model.kind=linear", "task.model.l1=0.5"} +
        scheduled(schedule, 7, 2, "virtual"));
    for (size_t j = 0; j < 7; ++j) {
      const double beyond = std::abs(products[j]) - 0.5;
      EXPECT_EQ(found[j], beyond > 0 ? static_cast<float>(std::copysign(beyond, products[j])) : 0)
          << schedule << j;
    }
    EXPECT_EQ(found[7], 7.0F / 8) << "the mean target";
  }
}

// Rounds, not time. Where whole groups are updated at once the steps add up to too much.
TEST(Scheduled, PriorityConvergesWhereRandomDoesNot) {
  const Settings stop = {"strategy.gap=1e-4", "task.eval_every=0.25"};
  const auto run_of = [&](const std::string& schedule, int parallel) {
    return run(lasso_task() + scheduled(schedule, parallel, 2, "virtual") + stop);
  };
  const RunRecord priority = run_of("priority", 24), random = run_of("random", 24);
  ASSERT_EQ(priority.status, RunStatus::kDone) << priority.error;
  EXPECT_GT(figure(priority, "rounds_to_optimum"), 0);
  EXPECT_EQ(random.status, RunStatus::kDiverged);
  EXPECT_NE(random.error.find("strategy.parallel"), std::string::npos) << random.error;
  // Fewer at once: both get there, random later.
  const RunRecord few = run_of("priority", 4), slow = run_of("random", 4);
  ASSERT_EQ(few.status, RunStatus::kDone) << few.error;
  ASSERT_EQ(slow.status, RunStatus::kDone) << slow.error;
  EXPECT_LT(figure(few, "rounds_to_optimum"), figure(slow, "rounds_to_optimum"));
  EXPECT_LT(figure(priority, "rounds_to_optimum"), figure(few, "rounds_to_optimum"))
      << "parallelism pays";
}

TEST(Scheduled, BothFabricsGiveTheSameBits) {
  const Settings task = lasso_task() + Settings{"task.epochs=20", "task.data.correlation=0"};
  for (const char* schedule : {"priority", "random", "cyclic"})
    for (const int workers : {1, 3})
      EXPECT_EQ(checksum(task + scheduled(schedule, 4, workers, "process")),
                checksum(task + scheduled(schedule, 4, workers, "virtual")))
          << schedule << workers;
}

TEST(Scheduled, DeterministicBitsDoNotDependOnWorkersOrTopology) {
  const Settings task = lasso_task() + Settings{"task.epochs=20", "task.deterministic=true"};
  const std::string expected = checksum(task + scheduled("priority", 8, 1, "process"));
  for (const char* topology : {"ring", "tree", "all_to_all"})
    EXPECT_EQ(checksum(task + scheduled("priority", 8, 3, "virtual") +
                       Settings{"strategy.topology=" + std::string(topology)}),
              expected)
        << topology;
  EXPECT_EQ(checksum(task + scheduled("priority", 8, 4, "process")), expected);
}

// In turn, so that which worker has how much to do is known.
TEST(Scheduled, CostsAreTheSameWithoutTheArithmetic) {
  const Settings task = lasso_task() + Settings{"task.epochs=5", "task.data.correlation=0"} +
                        scheduled("cyclic", 8, 3, "virtual");
  const RunRecord full = run(task), cost = run(task + Settings{"cluster.cost_only=true"});
  ASSERT_EQ(cost.status, RunStatus::kDone) << cost.error;
  ASSERT_EQ(full.nodes.size(), 4u);
  EXPECT_EQ(full.nodes[3].role, "scheduler");
  for (size_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(full.nodes[rank].total_s, cost.nodes[rank].total_s) << rank;
    EXPECT_EQ(full.nodes[rank].bytes_sent, cost.nodes[rank].bytes_sent) << rank;
  }
}

// The same objective by subgradients: as near as they come with a rate of 0.01 on a loss whose
// gradients are of the order of 1.
TEST(Scheduled, OtherStrategiesTrainTheSameObjective) {
  const Settings task = lasso_task() + Settings{"task.data.correlation=0"};
  const Lasso lasso(task);
  const std::vector<float> ours = parameters_after(task + scheduled("priority", 8, 2, "virtual") +
                                                   Settings{"strategy.gap=1e-8"});
  const std::vector<float> theirs = parameters_after(
      task + Settings{"strategy.kind=allreduce", "cluster.workers=2", "task.epochs=400",
                      "task.global_batch=243", "optimizer.kind=sgd", "optimizer.lr=0.2",
                      "optimizer.schedule=cosine"});
  const double best = lasso.objective({ours.begin(), ours.end()});
  EXPECT_NEAR(lasso.objective({theirs.begin(), theirs.end()}), best, 0.02 * best);
}

TEST(ScheduledSettings, ThatContradictEachOtherAreNamed) {
  const auto refused = [](const Settings& more, const char* named) {
    const std::string said = refusal(lasso_task() + scheduled("priority", 8, 2, "process") + more);
    EXPECT_NE(said.find(named), std::string::npos) << named << " is not in: " << said;
  };
  EXPECT_EQ(refusal(lasso_task() + scheduled("priority", 8, 2, "process")), "");
  EXPECT_NE(refusal(Settings{"task.data.kind=synthetic-linear", "task.model.kind=mlp"} +
                    scheduled("priority", 8, 2, "process"))
                .find("task.model = \"linear\" only"),
            std::string::npos);
  refused({"task.partition=disjoint"}, "task.partition: ");
  refused({"optimizer.clip_norm=1"}, "optimizer.clip_norm: ");
  refused({"optimizer.weight_decay=0.1"}, "optimizer.weight_decay: ");
  refused({"strategy.gap=0.1", "task.model.l1=0"}, "strategy.gap: ");
  refused({"cluster.workers=65"}, "64 features");
  refused({"strategy.parallel=0"}, "strategy.parallel");
  refused({"strategy.conflict=2"}, "strategy.conflict");
  refused({"task.model.l1=-1"}, "task.model.l1");
  EXPECT_NE(refusal(logistic_task() + scheduled("random", 8, 2, "process")), "");
}

}  // namespace
}  // namespace tutti
