#include "strategies/reported_progress.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tutti {

ReportedProgress::ReportedProgress(size_t workers, size_t me, double now_s)
    : workers_(workers), me_(me), started_s_(now_s), facts_(2 * workers + 1) {}

void ReportedProgress::set_own_samples(int64_t samples, double now_s) {
  facts_[samples_of(me_)] = samples;
  facts_[microseconds_of(me_)] = std::llround(1e6 * (now_s - started_s_));
}

int64_t ReportedProgress::samples() const {
  int64_t sum = 0;
  for (size_t worker = 0; worker < workers_; ++worker) sum += facts_[samples_of(worker)];
  return sum;
}

int64_t ReportedProgress::likely_samples(double now_s, const std::vector<bool>& living) const {
  const auto first =
      static_cast<size_t>(std::find(living.begin(), living.end(), true) - living.begin());
  const double now_us = 1e6 * (now_s - started_s_);
  double sum = 0;
  for (size_t worker = 0; worker < workers_; ++worker) {
    const auto known = static_cast<double>(facts_[samples_of(worker)]);
    const auto then_us = static_cast<double>(facts_[microseconds_of(worker)]);
    if (worker == me_ || worker == first || !living[worker])
      sum += known;
    else if (then_us <= 0)
      sum += static_cast<double>(facts_[samples_of(me_)]);
    else
      sum += known * std::max(1.0, now_us / then_us);
  }
  return std::llround(sum);
}

void ReportedProgress::write(std::span<std::byte> message) const {
  std::memcpy(message.data(), facts_.data(), bytes());
}

void ReportedProgress::learn(std::span<const std::byte> message) {
  for (size_t i = 0; i < facts_.size(); ++i) {
    int64_t fact = 0;
    std::memcpy(&fact, message.data() + i * sizeof(int64_t), sizeof(int64_t));
    facts_[i] = std::max(facts_[i], fact);
  }
}

}  // namespace tutti
