#include "testbed/model_cost.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <ctime>
#include <set>

#include "core/bytes.h"
#include "jobs/plugins.h"
#include "jobs/reference_kernel.h"
#include "models/sparse_model.h"
#include "testbed/interval.h"

namespace tutti {
namespace {

using std::chrono::steady_clock;

constexpr double kBudget_s = 1.5;
constexpr double kLongest_s = 2;    // longer batches are not timed
constexpr size_t kLeastSizes = 4;   // timed even if they take longer
constexpr size_t kLeastRounds = 3;  // the first round touches memory and does not count
constexpr size_t kCalls = 3;        // of each pass in a round; the fastest counts
constexpr size_t kCosts = 3;
using Costs = std::array<double, kCosts>;
using Row = std::array<double, kCosts + 1>;  // how often each cost occurs, and the right side
// Batches that are smaller than any worker's share count less: what the fit misses there matters to
// nobody, and kernels are less efficient on few samples.
constexpr double kWeightOfSmall = 0.25;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double seconds_since(steady_clock::time_point begin) {
  return std::chrono::duration<double>(steady_clock::now() - begin).count();
}

// Returns the CPU time of this thread. Kernels have one thread here, and time that other programs
// take must not count for the model.
double cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Solves the normal equations for the costs in `used`. Returns false when they cannot be told
// apart.
bool solve(std::span<const Row> rows, unsigned used, Costs& costs) {
  std::array<std::array<double, kCosts + 1>, kCosts> m{};
  for (size_t i = 0; i < kCosts; ++i) {
    if (!(used >> i & 1)) {
      m[i][i] = 1;  // its right side is 0, so an unused cost is 0
      continue;
    }
    for (const Row& row : rows) {
      for (size_t j = 0; j < kCosts; ++j)
        if (used >> j & 1) m[i][j] += row[i] * row[j];
      m[i][kCosts] += row[i] * row[kCosts];
    }
  }
  for (size_t i = 0; i < kCosts; ++i) {  // no pivots: symmetric and not negative
    const double pivot = m[i][i];
    if (!(pivot > 0)) return false;
    for (size_t k = i + 1; k < kCosts; ++k) {
      const double factor = m[k][i] / pivot;
      const double before = m[k][k];
      for (size_t j = i; j <= kCosts; ++j) m[k][j] -= factor * m[i][j];
      if (m[k][k] < 1e-12 * before) return false;
    }
  }
  for (size_t i = kCosts; i-- > 0;) {
    double value = m[i][kCosts];
    for (size_t j = i + 1; j < kCosts; ++j) value -= m[i][j] * costs[j];
    costs[i] = value / m[i][i];
  }
  return true;
}

double mean_square(std::span<const Row> rows, const Costs& costs) {
  double sum = 0, weights = 0;
  for (const Row& row : rows) {
    double off = -row[kCosts];
    for (size_t i = 0; i < kCosts; ++i) off += row[i] * costs[i];
    sum += off * off;
    weights += row[kCosts] * row[kCosts];
  }
  return sum / weights;
}

// A model with batches of several sizes, and the times of passes over them.
class PassTimer {
 public:
  PassTimer(const Job& job, const Resolved& task)
      : architecture_(task.architecture),
        task_(task),
        share_(job.task.global_batch / std::max<int64_t>(1, job.cluster.workers)),
        some_(architecture_.row_width > 0 && architecture_.parameter_count > kMostFlat),
        parameters_(some_ ? 0 : architecture_.parameter_count),
        gradients_(parameters_.size()) {
    if (!some_) initialise(architecture_, job.task.seed, parameters_.span());
    model_ = load_models(architecture_, 1)
                 .whole(architecture_, {parameters_.span(), gradients_.span()},
                        {.seed = job.task.seed, .threads = 1});
    const auto there = static_cast<int64_t>(task.data.splits.train.size());
    const int64_t most = std::min(there, std::max<int64_t>(4, job.task.global_batch));
    add_batch(1);
    timed(0, true);  // touches memory
    // A large model takes hardly longer for a few samples than for one, so each size predicts the
    // time of the next.
    for (const int64_t size : batches_to_time(most)) {
      if (size == 1) continue;
      const double so_far_s = timed(batches_.size() - 1, true);
      const double next_s =
          so_far_s * static_cast<double>(size) / static_cast<double>(batches_.back().size());
      if (next_s > kLongest_s && batches_.size() >= kLeastSizes) break;
      add_batch(size);
    }
    times_.resize(2 * batches_.size());
  }

  void round() {
    for (size_t i = 0; i < batches_.size(); ++i)
      for (const bool gradient : {false, true})
        times_[2 * i + gradient].push_back(timed(i, gradient));
  }

  // Returns the timed passes without the first round.
  std::vector<TimedPass> passes() const {
    std::vector<TimedPass> result;
    const auto layers = static_cast<double>(architecture_.layers.size());
    for (size_t i = 0; i < times_.size(); ++i) {
      const bool gradient = i % 2;
      const size_t size = batches_[i / 2].size();
      result.push_back({.layers = gradient ? 2 * layers : layers,
                        .samples = static_cast<double>(size) / (gradient ? 1 : 3),
                        .seconds = median({times_[i].begin() + 1, times_[i].end()}),
                        .batch = static_cast<int64_t>(size),
                        .weight = std::cmp_less(size, share_) ? kWeightOfSmall : 1});
    }
    return result;
  }

  // Returns how slow each round was but the first, as a share of the medians.
  std::vector<double> slowness() const {
    const size_t rounds = times_.front().size() - 1;
    std::vector<double> slow(rounds);
    for (const std::vector<double>& times : times_) {
      const double usual_s = median({times.begin() + 1, times.end()});
      for (size_t r = 0; r < rounds; ++r)
        slow[r] += times[r + 1] / usual_s / static_cast<double>(times_.size());
    }
    return slow;
  }

 private:
  void add_batch(int64_t size) {
    const std::span<const uint32_t> train = task_.data.splits.train;
    batches_.emplace_back();
    task_.data.dataset->gather(train.first(static_cast<size_t>(size)), batches_.back());
    if (!some_) return;
    std::vector<uint64_t> keys;  // that the batch touches
    touched_rows(architecture_, batches_.back(), keys);
    dynamic_cast<SparseModel&>(*model_).hold(keys);
    std::fill(model_->parameters().begin(), model_->parameters().end(), 0.0F);
  }

  double timed(size_t index, bool gradient) {
    Batch& batch = batches_[index];
    const std::span<const uint32_t> samples =
        std::span(task_.data.splits.train).first(batch.size());
    double least_s = INFINITY, sum_s = 0;
    for (size_t i = 0; i < kCalls && (i == 0 || sum_s < kBudget_s / 30); ++i) {
      const double begin_s = cpu_s();
      task_.data.dataset->gather(samples, batch);  // as each step does
      if (gradient)
        model_->gradient(batch, 1.0f, [](Range) {});
      else
        model_->evaluate(batch);
      const double seconds = cpu_s() - begin_s;
      least_s = std::min(least_s, seconds);
      sum_s += seconds;
    }
    return least_s;
  }

  const Architecture& architecture_;
  const Resolved& task_;
  int64_t share_;  // of a batch, that a worker computes
  bool some_;      // use only some rows: all would be too many
  Buffer<float> parameters_, gradients_;
  std::unique_ptr<Model> model_;
  std::vector<Batch> batches_;
  std::vector<std::vector<double>> times_;  // by batch: forward passes, gradients
};

}  // namespace

PassCosts fit_pass_costs(std::span<const TimedPass> passes) {
  std::vector<Row> rows;
  for (const TimedPass& pass : passes) {
    const double unit = std::sqrt(pass.weight);  // of an error that is as large as the time
    const double by_time = unit / pass.seconds;
    rows.push_back({by_time, pass.layers * by_time, pass.samples * by_time, unit});
  }
  Costs best{};
  double least = INFINITY;
  for (unsigned used = 1; used < 1U << kCosts; ++used) {  // subset of costs above 0
    Costs costs{};
    if (!solve(rows, used, costs)) continue;
    if (*std::min_element(costs.begin(), costs.end()) < 0) continue;
    const double off = mean_square(rows, costs);
    if (off >= least) continue;
    least = off;
    best = costs;
  }
  return {best[0], best[1], best[2], std::sqrt(least)};
}

std::vector<int64_t> batches_to_time(int64_t most) {
  constexpr double kSizes = 5;
  std::set<int64_t> sizes;
  for (int64_t i = 1; i <= std::min<int64_t>(most, 4) && most < 8; ++i) sizes.insert(i);
  for (double i = 0; i < kSizes; ++i)
    sizes.insert(std::llround(std::pow(static_cast<double>(most), i / (kSizes - 1))));
  return {sizes.begin(), sizes.end()};
}

ModelCost measure_model_cost(const Job& job, const Resolved& task) {
  PassTimer timer(job, task);
  std::vector<double> kernels;
  const auto start = steady_clock::now();
  while (kernels.size() < kLeastRounds || seconds_since(start) < kBudget_s) {
    kernels.push_back(measure_reference_flops());
    timer.round();
  }
  ModelCost cost;
  cost.timed = timer.passes();
  cost.reference_flops = median(kernels);
  const PassCosts costs = fit_pass_costs(cost.timed);
  cost.step_s = costs.step_s;
  cost.layer_s = costs.layer_s;
  cost.error = costs.error;
  std::vector<double> rounds = timer.slowness();  // times x speed: what the kernel does not explain
  for (size_t r = 0; r < rounds.size(); ++r) rounds[r] *= kernels[r + 1] / cost.reference_flops;
  cost.noise = spread_of(rounds)->relative;
  cost.rounds = static_cast<int>(rounds.size());
  // The arithmetic is not free even when a model is too small for its samples to be measured.
  const double training_flops = task.architecture.training_flops();
  const double least_s = training_flops / (4 * cost.reference_flops);
  cost.least_sample = costs.sample_s < least_s;
  cost.sample_s = std::max(costs.sample_s, least_s);
  cost.flops = training_flops / cost.sample_s;
  return cost;
}

double ModelCost::half_width() const {
  if (timed.empty()) return 0;  // declared
  const auto count = static_cast<double>(timed.size());
  const double fit = error * std::sqrt(count / std::max(1.0, count - static_cast<double>(kCosts)));
  return std::hypot(kNormalOf90Percent * fit, t_of_90_percent(rounds - 1) * noise);
}

ModelCost declared_model_cost(const Job& job, const Resolved& task) {
  const ClusterConfig& cluster = job.cluster;
  ModelCost cost;
  cost.flops = cost.reference_flops = cluster.speed_flops;
  cost.sample_s = task.architecture.training_flops() / cluster.speed_flops;
  cost.step_s = overhead_of(cluster, 0, 1, 0) * speed_factor_of(cluster, 0);
  cost.layer_s = overhead_of(cluster, 0, 0, 1) * speed_factor_of(cluster, 0);
  return cost;
}

// A node of speed v takes overhead x reference / v. It should take the time that was measured here,
// times the ratio of the kernel's speed here to that on the node.
void use_model_cost(ClusterConfig& cluster, const ModelCost& cost) {
  cluster.speed_flops *= cost.efficiency();
  cluster.loop_overhead_s *= cost.efficiency();
  cluster.step_overhead_s = cost.step_s * cost.flops / kReferenceFlops;
  cluster.layer_overhead_s = cost.layer_s * cost.flops / kReferenceFlops;
}

double fixed_share(const ClusterConfig& cluster, const Architecture& architecture, double samples) {
  const double fixed_s =
      overhead_of(cluster, 0, 1, 2 * static_cast<double>(architecture.layers.size()));
  return fixed_s / (fixed_s + samples * architecture.training_flops() / speed_of(cluster, 0));
}

}  // namespace tutti
