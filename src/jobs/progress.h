// Progress for people: one live line on a terminal, a plain line now and then otherwise. And for
// programs: a JSON object per line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/schema.h"
#include "strategies/recorder.h"

namespace tutti {

// To standard error. A reader who has left, or a full disk, must not end a run.
void tell(const std::string& text);

// How many characters fit in a line of the terminal behind `fd`; nothing where it is none, or does
// not say.
std::optional<size_t> terminal_columns(int fd);

enum class ProgressStyle { kNone, kLines, kLive, kJson };
constexpr auto words(ProgressStyle) { return WordList<4>{"none", "lines", "live", "json"}; }

// The length of a run, and where it begins.
struct Course {
  int64_t steps = 0, samples = 0;                // in total; 0 samples when not known
  int64_t steps_before = 0, samples_before = 0;  // of the run that this one resumes
  bool in_step = true;                           // the first worker counts the steps of the run

  // The step that all together have reached. Only where samples are known.
  int64_t step_at(int64_t after_samples) const;
  // A worker at a pace of its own has come beyond the last step by what it took over of others.
  bool counts_by_samples(int64_t own_steps) const {
    return !in_step && samples > 0 && own_steps > steps;
  }
};

class Progress {
 public:
  Progress(ProgressStyle style, std::string title, Course course, std::string metric);
  void step(const StepRow& row);
  void evaluation(const EvaluationRow& row);
  void end();  // leaves the terminal on a line of its own

 private:
  void print(const StepRow& row);
  std::string line_of(const StepRow& row, size_t columns) const;
  void print_json(const StepRow& row);
  // Returns the step of the run that all workers together have reached.
  int64_t position(const StepRow& row) const;

  ProgressStyle style_;
  std::string title_;
  Course course_;
  std::string metric_;
  double started_s_;
  double due_s_;  // when the next line may come
  double quality_ = -1;
  bool line_open_ = false;
  StepRow last_;
};

}  // namespace tutti
