#include "strategies/parameter_server/consistency.h"

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "strategies/parameter_server/messages.h"

namespace tutti::parameter_server {

size_t Consistency::quorum(size_t, size_t, size_t) const { return 1; }
bool Consistency::may_read(int64_t, int64_t, int64_t, bool) const { return true; }
int64_t Consistency::bound() const { return kMostBound; }
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
  bool may_read(int64_t clock, int64_t oldest, int64_t bound, bool) const override {
    return oldest >= clock - bound;
  }
  int64_t bound() const override { return bound_; }

 protected:
  int64_t bound_;
};

// Workers that wait much need more room; where all are busy, room only makes gradients stale.
class Adaptive : public Ssp {
 public:
  explicit Adaptive(const Config& config, int64_t workers)
      : Ssp(config.staleness),
        executions_(config.executions),
        most_(16 * std::max<int64_t>(1, config.staleness)),
        least_(asks_ahead_of_push(config) ? 1 : 0),
        reports_(static_cast<size_t>(workers), -1) {}

  bool may_read(int64_t clock, int64_t oldest, int64_t bound, bool waited) const override {
    // Who had to wait goes on only when the slowest has made enough steps, not after each of them.
    const int64_t more = waited ? std::min(executions_ - 1, bound) : 0;
    return oldest >= clock - bound + more;
  }

  void observe(int worker, double occupancy, size_t present) override {
    if (occupancy < 0) return;
    reports_[static_cast<size_t>(worker)] = occupancy;
    double sum = 0;
    size_t count = 0;
    for (const double report : reports_)
      if (report >= 0) {
        sum += report;
        ++count;
      }
    if (count < present) return;
    const double mean = sum / static_cast<double>(count);
    // By a half: a worker that slows down is several steps behind by the time all have reported.
    if (mean < kIdle) bound_ = std::min(bound_ + std::max<int64_t>(1, bound_ / 2), most_);
    if (mean > kBusy) bound_ = std::max(bound_ - 1, least_);
    std::fill(reports_.begin(), reports_.end(), -1.0);
  }

  void archive(Archive& archive) override { archive(bound_, reports_); }

 private:
  static constexpr double kIdle = 0.8, kBusy = 0.95;
  int64_t executions_;
  int64_t most_, least_;
  std::vector<double> reports_;  // since the bound was looked at; -1: none
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
