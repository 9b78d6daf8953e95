#include "strategies/parameter_server/consistency.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.h"
#include "strategies/parameter_server/messages.h"

namespace tutti::parameter_server {

size_t Consistency::quorum(size_t, size_t, size_t) const { return 1; }
bool Consistency::may_read(int64_t, int64_t, int64_t, bool) { return true; }
int64_t Consistency::bound() const { return kMostBound; }
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
  int64_t bound() const override { return bound_; }

 protected:
  int64_t bound_;
};

// Workers that wait much need more room; where all are equally busy, room only makes gradients
// stale. Who waits is less busy than who is waited for, whatever they all spend on the network.
//
// A bound of clocks since the start would only lend time: however large, a worker that stays slower
// uses it up, and when it has recovered, the others could not come closer without waiting for it to
// catch up. So what the slowest is behind is forgiven after some steps of its own, and the bound
// says how many steps the others may make meanwhile.
class Adaptive : public Ssp {
 public:
  explicit Adaptive(const Config& config, int64_t workers)
      : Ssp(config.staleness),
        executions_(config.executions),
        most_(16 * std::max<int64_t>(1, config.staleness)),
        least_(asks_ahead_of_push(config) ? 1 : 0),
        reports_(static_cast<size_t>(workers), 0),
        slowness_(static_cast<size_t>(workers), 0) {}

  bool may_read(int64_t clock, int64_t oldest, int64_t bound, bool waited) override {
    used_ = std::max(used_, std::min(clock - oldest, bound));
    // Who had to wait goes on only when the slowest has made enough steps, not after each of them.
    const int64_t more = waited ? std::min(executions_ - 1, bound) : 0;
    return oldest >= clock - bound + more;
  }

  bool forgives(int64_t pushes) const override { return pushes >= executions_; }

  void observe(int worker, double occupancy, size_t present) override {
    if (occupancy < 0) return;
    const auto index = static_cast<size_t>(worker);
    reports_[index] += 1;
    slowness_[index] += 1 / std::max(occupancy, kLeast);
    double sum = 0, most = 0;
    size_t count = 0;
    for (size_t i = 0; i < reports_.size(); ++i) {
      if (reports_[i] == 0) continue;
      // Steps take as much work each, so this is the share of all its time since then.
      const double busy = reports_[i] / slowness_[i];
      sum += busy;
      most = std::max(most, busy);
      ++count;
    }
    if (count < present) return;
    if (count > 1) follow((sum / most - 1) / static_cast<double>(count - 1));
    used_ /= 2;  // who is let off is level with the others for a while
    std::fill(reports_.begin(), reports_.end(), 0.0);
    std::fill(slowness_.begin(), slowness_.end(), 0.0);
  }

  void archive(Archive& archive) override { archive(bound_, used_, reports_, slowness_); }

 private:
  // `busy`: the others, compared with the busiest. Who is busy for a quarter of the time needs four
  // times the room. It falls to twice what anybody made use of at once, and below that step by
  // step.
  void follow(double busy) {
    if (busy < kIdle) {
      const double room = static_cast<double>(bound_ + 1) / std::max(busy, kLeast);
      bound_ = std::min(static_cast<int64_t>(std::ceil(room)) - 1, most_);
    }
    if (busy > kBusy) bound_ = std::max(std::min(bound_ - 1, 2 * used_), least_);
  }

  static constexpr double kIdle = 0.8, kBusy = 0.95, kLeast = 1e-3;
  int64_t executions_;
  int64_t most_, least_;
  int64_t used_ = 0;              // how far anybody was ahead, forgotten by halves
  std::vector<double> reports_;   // of each worker since the bound was looked at
  std::vector<double> slowness_;  // the sum of 1 / occupancy of these
};

}  // namespace

std::unique_ptr<Consistency> make_consistency(const Config& config, int64_t workers) {
  if (config.consistency == "bsp") return std::make_unique<Bsp>();
  if (config.consistency == "asp") return std::make_unique<Asp>();
  if (config.consistency == "ssp") return std::make_unique<Ssp>(config.staleness);
  if (config.consistency == "adaptive") return std::make_unique<Adaptive>(config, workers);
  TUTTI_CHECK(config.consistency == "backup");
  return std::make_unique<Backup>(workers - config.backup);
}

double rate_factor(const Config& config, double rounds_stale, int64_t clocks_behind) {
  if (config.rate == "staleness") return 1 / std::max(1.0, rounds_stale);
  if (config.rate == "worker")
    return 1 / static_cast<double>(1 + std::max<int64_t>(0, clocks_behind));
  return 1;
}

}  // namespace tutti::parameter_server
