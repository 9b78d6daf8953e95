#include "jobs/diary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace tutti {
namespace {

constexpr const char* kSeriesHeader = "step,time_s,loss,rate,samples\n";
constexpr const char* kEvaluationsHeader = "step,time_s,epoch,samples,loss,quality\n";

std::string line_of(const EvaluationRow& row, double data_s) {
  return fmt::format("{},{},{},{},{},{}\n", row.step, row.time_s + data_s, row.epoch, row.samples,
                     row.loss, row.quality);
}

}  // namespace

Course course_of(const Plan& plan) {
  return {.steps = plan.steps,
          .samples = plan.samples,
          .steps_before = plan.resumed.steps,
          .samples_before = plan.resumed.samples,
          .in_step = plan.taxonomy.timing == Timing::kSynchronous};
}

Diary::Diary(const Stage& stage, Keeping keeping, bool continues)
    : keeping_(std::move(keeping)),
      course_(course_of(stage.resolved.plan)),
      progress_(stage.progress, stage.resolved.job.name + " " + stage.resolved.job.strategy_kind,
                course_, stage.resolved.architecture.classification ? "accuracy" : "mse"),
      data_s_(stage.data_s),
      measurements_(*stage.book),
      continues_(continues) {
  last_.step = course_.steps_before;
  last_.samples = course_.samples_before;
  std::vector<EvaluationRow> before;
  if (continues) before = measurements_.news();
  if (stage.folder.empty()) return;
  const std::string series = stage.folder + "/series.csv";
  if (continues) continue_series(series);
  steps_.emplace(series, kSeriesHeader, continues);
  // The last rows may not be there, or not all of the last one.
  evaluations_.emplace(stage.folder + "/evaluations.csv", kEvaluationsHeader);
  for (const EvaluationRow& row : before) evaluations_->append(line_of(row, data_s_));
}

void Diary::continue_series(const std::string& path) {
  double loss = 0, rate = 0;
  StepRow last;
  if (std::sscanf(last_whole_line(path).c_str(), "%ld,%lf,%lf,%lf,%ld", &last.step, &last.time_s,
                  &loss, &rate, &last.samples) != 5)
    return;  // the header, or nothing
  last_ = last;
  last_.time_s -= data_s_;
}

// Where workers take their steps together, all of them count alike. Elsewhere each counts its own:
// who goes on for another one, or takes steps for one that is lost, counts by the samples of all.
int64_t Diary::count(const StepRow& own) const {
  const int64_t step = own.step + course_.steps_before;
  const bool goes_on = !continues_ || (course_.in_step && step > last_.step);
  if (goes_on && !course_.counts_by_samples(step)) return step;
  if (course_.samples <= 0) return last_.step + 1;
  return std::max(last_.step, course_.step_at(own.samples));
}

void Diary::step(const StepRow& own) {
  StepRow row = own;
  row.step = count(own);
  // A node that takes over may have heard of less than was written before.
  if (continues_ &&
      (row.step < last_.step || row.time_s < last_.time_s || row.samples < last_.samples))
    return;
  last_ = row;
  if (steps_)
    steps_->append(fmt::format("{},{},{},{},{}\n", row.step, row.time_s + data_s_, row.loss,
                               row.rate, row.samples));
  progress_.step(row);
}

void Diary::catch_up(const StepRow& own) {
  if (own.time_s > last_.time_s) step(own);
}

void Diary::look() {
  for (const EvaluationRow& row : measurements_.news()) write(row);
}

void Diary::write(const EvaluationRow& row) {
  if (evaluations_) {
    evaluations_->append(line_of(row, data_s_));
    evaluations_->flush();
    steps_->flush();
  }
  progress_.evaluation(row);
}

void Diary::end() {
  look();
  progress_.end();
  if (steps_) steps_->flush();
  if (evaluations_) evaluations_->flush();
}

void complete_diary(const std::string& folder, const std::vector<EvaluationRow>& evaluations,
                    double data_s) {
  std::string text = kEvaluationsHeader;
  for (const EvaluationRow& row : evaluations) text += line_of(row, data_s);
  write_file(folder + "/evaluations.csv", text);
  last_whole_line(folder + "/series.csv");
}

}  // namespace tutti
