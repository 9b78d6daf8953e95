#include "testbed/compare_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/printable.h"
#include "core/units.h"

namespace tutti {
namespace {

constexpr double kLiveEvery_s = 0.1;
constexpr double kLinesEvery_s = 10;
constexpr size_t kBarWidth = 24;

double wall_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

CompareProgress::CompareProgress(ProgressStyle style, size_t total_runs, std::string metric,
                                 size_t columns)
    : style_(style),
      total_runs_(total_runs),
      metric_(std::move(metric)),
      columns_(columns),
      started_s_(wall_s()),
      printed_s_(started_s_) {}

void CompareProgress::kept(size_t runs) {
  ended_ += runs;
  if (runs > 0) say(fmt::format("{} of {} runs are there already", runs, total_runs_));
}

void CompareProgress::ended(const std::string& name, const std::string& how) {
  ++ended_;
  say(fmt::format("[{}/{}] {}: {}", ended_, total_runs_, name, how));
}

void CompareProgress::say(const std::string& line) {
  if (style_ == ProgressStyle::kNone) return;
  clear();
  tell(printable(line) + "\n");
}

std::string CompareProgress::bar(const RunProgress& run) const {
  const double share =
      run.total > 0
          ? std::clamp(static_cast<double>(run.step) / static_cast<double>(run.total), 0.0, 1.0)
          : 0;
  const auto full = static_cast<size_t>(share * kBarWidth);
  std::string line = fmt::format("{:<20.20} [{}{}] {:>3.0f} %", run.name, std::string(full, '#'),
                                 std::string(kBarWidth - full, '.'), 100 * share);
  if (run.total == 0) line += "  starting";
  if (run.loss && *run.loss != 0) line += fmt::format("  loss {:.3f}", *run.loss);
  if (run.quality) line += fmt::format("  {} {}", metric_, human_quality(*run.quality));
  return line.substr(0, columns_);
}

void CompareProgress::update(const std::vector<RunProgress>& running) {
  if (style_ == ProgressStyle::kNone) return;
  const bool live = style_ == ProgressStyle::kLive;
  if (wall_s() - printed_s_ < (live ? kLiveEvery_s : kLinesEvery_s)) return;
  printed_s_ = wall_s();
  if (!live) {
    for (const RunProgress& run : running)
      if (run.total > 0) tell(fmt::format("{}: step {}/{}\n", run.name, run.step, run.total));
    return;
  }
  clear();
  std::string text;
  for (const RunProgress& run : running) text += bar(run) + "\n";
  text += fmt::format("{} of {} runs, {:.0f} s\n", ended_, total_runs_, wall_s() - started_s_);
  tell(text);
  bars_ = running.size() + 1;
}

void CompareProgress::clear() {
  if (bars_ > 0) tell(fmt::format("\033[{}F\033[J", bars_));
  bars_ = 0;
}

}  // namespace tutti
