#include "jobs/progress.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdio>

namespace tutti {
namespace {

// Progress is for whoever watches, so it follows their clock, also when time is simulated.
double wall_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

constexpr double kLiveEvery_s = 0.1;
constexpr double kLinesEvery_s = 5;

}  // namespace

void tell(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

Progress::Progress(ProgressStyle style, std::string title, int64_t total_steps, std::string metric)
    : style_(style),
      title_(std::move(title)),
      total_steps_(total_steps),
      metric_(std::move(metric)),
      started_s_(wall_s()),
      printed_s_(started_s_) {}

void Progress::step(const StepRow& row) {
  last_ = row;
  if (style_ == ProgressStyle::kNone) return;
  if (wall_s() - printed_s_ < (style_ == ProgressStyle::kLines ? kLinesEvery_s : kLiveEvery_s))
    return;
  print(row);
}

void Progress::evaluation(const EvaluationRow& row) {
  quality_ = row.quality;
  if (style_ == ProgressStyle::kLive || style_ == ProgressStyle::kJson) print(last_);
  if (style_ == ProgressStyle::kLines)
    tell(fmt::format("{}: epoch {:.4g}, step {}: {} {:.4f}, loss {:.4f}, {:.1f} s\n", title_,
                     row.epoch, row.step, metric_, row.quality, row.loss, row.time_s));
}

void Progress::print(const StepRow& row) {
  printed_s_ = wall_s();
  if (style_ == ProgressStyle::kJson) return print_json(row);
  const double elapsed = printed_s_ - started_s_;
  const double left = row.step > 0 ? elapsed / static_cast<double>(row.step) *
                                         static_cast<double>(total_steps_ - row.step)
                                   : 0;
  std::string line = fmt::format(
      "{}: step {}/{}, loss {:.3f}, {:.0f} samples/s, {:.0f} s left", title_, row.step,
      total_steps_, row.loss, elapsed > 0 ? static_cast<double>(row.samples) / elapsed : 0, left);
  if (quality_ >= 0) line += fmt::format(", {} {:.4f}", metric_, quality_);
  if (style_ == ProgressStyle::kLive) {
    tell("\r\033[K" + line);
    line_open_ = true;
  } else {
    tell(line + "\n");
  }
}

void Progress::print_json(const StepRow& row) {
  const auto number = [](double value) {
    return std::isfinite(value) ? fmt::format("{}", value) : "null";
  };
  tell(fmt::format("{{\"step\":{},\"total\":{},\"time_s\":{},\"loss\":{},\"quality\":{}}}\n",
                   row.step, total_steps_, number(row.time_s), number(row.loss),
                   quality_ >= 0 ? number(quality_) : "null"));
}

void Progress::end() {
  if (line_open_) tell("\r\033[K");
  line_open_ = false;
}

}  // namespace tutti
