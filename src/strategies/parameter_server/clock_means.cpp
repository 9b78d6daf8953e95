#include "strategies/parameter_server/clock_means.h"

namespace tutti::parameter_server {

std::span<const float> ClockMeans::revise(int64_t clock, std::span<const float> gradient,
                                          double scale, double rate) {
  Clock& open = clocks_[clock];
  const auto count = static_cast<double>(++open.count);
  open.sum.resize(gradient.size());
  change_.resize(gradient.size());
  // At a rate of 0 nothing moves, so the division by the rate can be skipped.
  const auto own = static_cast<float>(scale / count);
  const auto others =
      count > 1 && rate > 0 ? static_cast<float>(1 / (count * (count - 1) * rate)) : 0.0f;
  const auto added = static_cast<float>(scale * rate);
  for (size_t i = 0; i < gradient.size(); ++i) {
    change_[i] = own * gradient[i] - others * open.sum[i];
    open.sum[i] += added * gradient[i];
  }
  return change_;
}

void ClockMeans::forget_before(int64_t clock) {
  clocks_.erase(clocks_.begin(), clocks_.lower_bound(clock));
}

void ClockMeans::archive(Archive& archive) {
  uint64_t count = clocks_.size();
  archive(count);
  if (!archive.reading()) {
    for (auto& [clock, open] : clocks_) {
      int64_t number = clock;
      archive(number, open.count, open.sum);
    }
    return;
  }
  clocks_.clear();
  for (; count > 0; --count) {
    int64_t number = 0;
    archive(number);
    Clock& open = clocks_[number];
    archive(open.count, open.sum);
  }
}

}  // namespace tutti::parameter_server
