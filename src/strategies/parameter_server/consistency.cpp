#include "strategies/parameter_server/consistency.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/error.h"
#include "strategies/parameter_server/messages.h"

namespace tutti::parameter_server {

size_t Consistency::quorum(size_t, size_t, size_t) const { return 1; }
bool Consistency::may_read(int64_t, int64_t, int64_t, bool) { return true; }
int64_t Consistency::bound(int) const { return kMostBound; }
bool Consistency::forgives(int64_t) const { return false; }
void Consistency::observe(int, double, size_t) {}

namespace {

class Bsp : public Consistency {
 public:
  bool collects() const override { return true; }
  bool lockstep() const override { return true; }
  size_t quorum(size_t parts, size_t, size_t) const override { return parts; }
};

class Backup : public Consistency {
 public:
  explicit Backup(int64_t needed) : needed_(static_cast<size_t>(needed)) {}
  bool collects() const override { return true; }
  // The last step of an epoch may have fewer, and so may a cluster that lost more than `backup`.
  size_t quorum(size_t, size_t present, size_t left) const override {
    return std::min({needed_, present, left});
  }

 private:
  size_t needed_;
};

class Asp : public Consistency {};

class Ssp : public Consistency {
 public:
  explicit Ssp(int64_t bound) : bound_(bound) {}
  bool may_read(int64_t clock, int64_t oldest, int64_t bound, bool) override {
    return oldest >= clock - bound;
  }
  int64_t bound(int) const override { return bound_; }

 protected:
  int64_t bound_;
};

// When the slowest worker has made `executions` steps of its own, its delay is forgiven. That is a
// synchronisation, and the bound says how many steps others may make between two of them. A worker
// that had to wait goes on only after the slowest has made `executions` steps, not after each of
// them.
class Executions : public Ssp {
 public:
  Executions(const Config& config, int64_t workers)
      : Ssp(config.staleness),
        executions_(config.executions),
        most_(16 * std::max<int64_t>(1, config.staleness)),
        least_(asks_ahead_of_push(config) ? 1 : 0),
        reports_(static_cast<size_t>(workers), 0),
        slowness_(static_cast<size_t>(workers), 0) {}

  bool may_read(int64_t clock, int64_t oldest, int64_t bound, bool waited) override {
    const int64_t more = waited ? std::min(executions_ - 1, bound) : 0;
    return oldest >= clock - bound + more;
  }
  bool forgives(int64_t pushes) const override { return pushes >= executions_; }

  void observe(int worker, double occupancy, size_t present) override {
    if (occupancy < 0) return;
    const auto index = static_cast<size_t>(worker);
    reports_[index] += 1;
    slowness_[index] += 1 / std::max(occupancy, kLeast);
    // Steps take as much work each, so this is the share of all its time since then.
    std::vector<double> busy(reports_.size(), 0);
    size_t count = 0;
    for (size_t i = 0; i < reports_.size(); ++i) {
      if (reports_[i] > 0) busy[i] = reports_[i] / slowness_[i];
      count += reports_[i] > 0;
    }
    if (count < present) return;
    follow(busy, count);
    std::fill(reports_.begin(), reports_.end(), 0.0);
    std::fill(slowness_.begin(), slowness_.end(), 0.0);
  }

 protected:
  // Called when all workers have reported. `busy` has the busy share of the time for each of the
  // `count` workers, and 0 for the others.
  virtual void follow(const std::vector<double>& busy, size_t count) = 0;
  void archive(Archive& archive) override { archive(bound_, reports_, slowness_); }
  int64_t limited(double bound) const {
    return std::clamp(static_cast<int64_t>(std::ceil(bound)), least_, most_);
  }

  static constexpr double kIdle = 0.8, kBusy = 0.95, kLeast = 1e-3;
  int64_t executions_;
  int64_t most_, least_;

 private:
  std::vector<double> reports_;   // by worker, since the last change of bounds
  std::vector<double> slowness_;  // the sum of 1 / occupancy of these
};

// A worker whose processor is occupied for half of the time of the most occupied one could make
// twice its steps: `executions` with the slowest and `bound` beyond them. A worker whose processor
// is never idle has room to spare, so its bound shrinks by one.
class Adaptive : public Executions {
 public:
  Adaptive(const Config& config, int64_t workers)
      : Executions(config, workers), bounds_(static_cast<size_t>(workers), config.staleness) {}

  int64_t bound(int worker) const override { return bounds_[static_cast<size_t>(worker)]; }

 private:
  void follow(const std::vector<double>& busy, size_t) override {
    const double most = *std::max_element(busy.begin(), busy.end());
    for (size_t i = 0; i < busy.size(); ++i) {
      if (busy[i] <= 0) continue;
      const double share = busy[i] / most;
      const auto steps = static_cast<double>(executions_ + bounds_[i]);
      if (share < kIdle) bounds_[i] = limited(steps / share - static_cast<double>(executions_));
      if (share > kBusy) bounds_[i] = std::max(bounds_[i] - 1, least_);
    }
  }
  void archive(Archive& archive) override {
    Executions::archive(archive);
    archive(bounds_);
  }

  std::vector<int64_t> bounds_;
};

// Workers that wait much need more room; where all are equally busy, room only makes gradients
// stale. Who waits is less busy than who is waited for, whatever they all spend on the network.
//
// A bound of clocks since the start would only lend time: however large, a worker that stays slower
// uses it up, and when it has recovered, the others could not come closer without waiting for it to
// catch up. So what the slowest is behind is forgiven after some steps of its own, and the bound
// says how many steps the others may make meanwhile.
class Waiting : public Executions {
 public:
  using Executions::Executions;

  bool may_read(int64_t clock, int64_t oldest, int64_t bound, bool waited) override {
    used_ = std::max(used_, std::min(clock - oldest, bound));
    return Executions::may_read(clock, oldest, bound, waited);
  }

 private:
  // Compares the other workers with the busiest. Workers that are busy for a quarter of the time
  // need four times the room. The bound falls at once to twice what anybody used, and below that
  // step by step.
  void follow(const std::vector<double>& busy, size_t count) override {
    const double most = *std::max_element(busy.begin(), busy.end());
    const double sum = std::accumulate(busy.begin(), busy.end(), 0.0);
    const double others = count > 1 ? (sum / most - 1) / static_cast<double>(count - 1) : kIdle;
    if (others < kIdle) {
      const double room = static_cast<double>(bound_ + 1) / std::max(others, kLeast);
      bound_ = std::min(static_cast<int64_t>(std::ceil(room)) - 1, most_);
    }
    if (others > kBusy) bound_ = std::max(std::min(bound_ - 1, 2 * used_), least_);
    used_ /= 2;  // who is let off is level with the others for a while
  }
  void archive(Archive& archive) override {
    Executions::archive(archive);
    archive(used_);
  }

  int64_t used_ = 0;  // the largest lead of any worker, halved at each change
};

}  // namespace

std::unique_ptr<Consistency> make_consistency(const Config& config, int64_t workers) {
  switch (config.consistency) {
    case ConsistencyKind::kBsp:
      return std::make_unique<Bsp>();
    case ConsistencyKind::kAsp:
      return std::make_unique<Asp>();
    case ConsistencyKind::kSsp:
      return std::make_unique<Ssp>(config.staleness);
    case ConsistencyKind::kAdaptive:
      return std::make_unique<Adaptive>(config, workers);
    case ConsistencyKind::kWaiting:
      return std::make_unique<Waiting>(config, workers);
    case ConsistencyKind::kBackup:
      break;
  }
  return std::make_unique<Backup>(workers - config.backup);
}

double rate_factor(const Config& config, int64_t parts, double rounds_stale,
                   int64_t clocks_behind) {
  if (config.update_weight > 0) return config.update_weight * static_cast<double>(parts);
  if (config.rate == RateKind::kStaleness) return 1 / std::max(1.0, rounds_stale);
  if (config.rate == RateKind::kWorker)
    return 1 / static_cast<double>(1 + std::max<int64_t>(0, clocks_behind));
  return 1;
}

}  // namespace tutti::parameter_server
