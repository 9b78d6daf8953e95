#include "jobs/diary.h"

#include <fmt/format.h>

namespace tutti {

Diary::Diary(const Stage& stage, const std::string& metric)
    : progress_(stage.progress, stage.job.name + " " + stage.job.strategy_kind, stage.total_steps,
                metric),
      data_s_(stage.data_s) {
  if (stage.folder.empty()) return;
  steps_.emplace(stage.folder + "/series.csv", "step,time_s,loss,rate,samples\n");
  evaluations_.emplace(stage.folder + "/evaluations.csv",
                       "step,time_s,epoch,samples,loss,quality\n");
}

void Diary::step(const StepRow& row) {
  if (steps_)
    steps_->append(
        fmt::format("{},{},{},{},{}\n", row.step, row.time_s + data_s_, row.loss, row.rate,
                              row.samples));
  progress_.step(row);
}

void Diary::evaluation(const EvaluationRow& row) {
  if (evaluations_) {
    evaluations_->append(fmt::format("{},{},{},{},{},{}\n", row.step, row.time_s + data_s_,
                                     row.epoch, row.samples, row.loss, row.quality));
    evaluations_->flush();
    steps_->flush();
  }
  progress_.evaluation(row);
}

void Diary::end() {
  progress_.end();
  if (steps_) steps_->flush();
  if (evaluations_) evaluations_->flush();
}

}  // namespace tutti
