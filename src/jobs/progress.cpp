#include "jobs/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>

#include "core/units.h"

namespace tutti {
namespace {

// Progress is for whoever watches, so it follows their clock, also when time is simulated.
double wall_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

constexpr double kLiveEvery_s = 0.1;
constexpr double kLinesEvery_s = 5;
constexpr double kFirstLineAfter_s = 1;  // so that who starts a run sees soon that it goes

double interval_s(ProgressStyle style) {
  return style == ProgressStyle::kLines ? kLinesEvery_s : kLiveEvery_s;
}

// The name of a job may be in any language: bytes that continue a character take no place.
bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

size_t characters_in(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string first_characters(const std::string& text, size_t most) {
  size_t count = 0;
  for (size_t i = 0; i < text.size(); ++i)
    if (begins_character(text[i]) && ++count > most) return text.substr(0, i);
  return text;
}

}  // namespace

void tell(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

std::optional<size_t> terminal_columns(int fd) {
  winsize size{};
  if (!isatty(fd) || ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return size.ws_col;
}

int64_t Course::step_at(int64_t after_samples) const {
  const double share = static_cast<double>(after_samples) / static_cast<double>(samples);
  return std::lround(std::min(1.0, share) * static_cast<double>(steps));
}

Progress::Progress(ProgressStyle style, std::string title, Course course, std::string metric)
    : style_(style),
      title_(std::move(title)),
      course_(course),
      metric_(std::move(metric)),
      started_s_(wall_s()),
      due_s_(started_s_ +
             (style == ProgressStyle::kLines ? kFirstLineAfter_s : interval_s(style))) {
  last_.step = course.steps_before;
  last_.samples = course.samples_before;
}

// When workers go at their own pace, or steps do without late workers, the first worker takes more
// or fewer steps than the run has batches. Then the samples of all workers tell the position.
int64_t Progress::position(const StepRow& row) const {
  if (course_.samples <= 0 || (course_.in_step && row.step <= course_.steps)) return row.step;
  return course_.step_at(row.samples);
}

void Progress::step(const StepRow& row) {
  last_ = row;
  if (style_ == ProgressStyle::kNone || wall_s() < due_s_) return;
  print(row);
}

void Progress::evaluation(const EvaluationRow& row) {
  quality_ = row.quality;
  if (style_ == ProgressStyle::kLive || style_ == ProgressStyle::kJson) print(last_);
  if (style_ != ProgressStyle::kLines) return;
  const std::string measured =  // nothing, where only costs count or there are no samples for it
      std::isnan(row.quality) ? ""
                              : fmt::format(" {} {}, loss {},", metric_, human_quality(row.quality),
                                            human_quality(row.loss));
  tell(fmt::format("{}: epoch {:.4g}, step {}:{} {}\n", title_, row.epoch, row.step, measured,
                   human_quantity(row.time_s, Unit::kSeconds)));
}

// What matters least goes first where a line is narrow: which run, how far, how fast; and what is
// still too long is cut, because a line that wraps cannot be overwritten.
std::string Progress::line_of(const StepRow& row, size_t columns) const {
  const double elapsed = wall_s() - started_s_;
  const int64_t at = position(row), done = at - course_.steps_before;
  const double left =
      done > 0 ? elapsed / static_cast<double>(done) * static_cast<double>(course_.steps - at) : 0;
  const std::string step = fmt::format("step {}/{}, ", at, course_.steps);
  std::string learnt = fmt::format("loss {:.3f}, ", row.loss);
  if (quality_ >= 0) learnt += fmt::format("{} {}, ", metric_, human_quality(quality_));
  const auto samples = static_cast<double>(row.samples - course_.samples_before);
  const std::string rate = fmt::format("{:.0f} samples/s, ", elapsed > 0 ? samples / elapsed : 0);
  const std::string rest = fmt::format("{:.0f} s left", left);
  for (const std::string& line : {fmt::format("{}: {}{}{}{}", title_, step, learnt, rate, rest),
                                  fmt::format("{}{}{}{}", step, learnt, rate, rest),
                                  fmt::format("{}{}{}", learnt, rate, rest)})
    if (characters_in(line) <= columns) return line;
  return first_characters(learnt + rest, columns);
}

void Progress::print(const StepRow& row) {
  due_s_ = wall_s() + interval_s(style_);
  if (style_ == ProgressStyle::kJson) return print_json(row);
  if (style_ != ProgressStyle::kLive)
    return tell(line_of(row, std::numeric_limits<size_t>::max()) + "\n");
  // Asked each time: windows change. The last column stays free, where some terminals wrap.
  const auto columns = terminal_columns(STDERR_FILENO);
  tell("\r\033[K" + line_of(row, columns ? *columns - 1 : std::numeric_limits<size_t>::max()));
  line_open_ = true;
}

void Progress::print_json(const StepRow& row) {
  const auto number = [](double value) {
    return std::isfinite(value) ? fmt::format("{}", value) : "null";
  };
  tell(fmt::format("{{\"step\":{},\"total\":{},\"time_s\":{},\"loss\":{},\"quality\":{}}}\n",
                   position(row), course_.steps, number(row.time_s), number(row.loss),
                   quality_ >= 0 ? number(quality_) : "null"));
}

void Progress::end() {
  if (line_open_) tell("\r\033[K");
  line_open_ = false;
}

}  // namespace tutti
