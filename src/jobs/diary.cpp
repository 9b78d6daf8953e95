#include "jobs/diary.h"

#include <fmt/format.h>

namespace tutti {

Diary::Diary(const Stage& stage, const std::string& metric)
    : progress_(stage.progress, stage.resolved.job.name + " " + stage.resolved.job.strategy_kind,
                {.steps = stage.resolved.plan.steps,
                 .samples = stage.resolved.plan.samples,
                 .steps_before = stage.resolved.plan.resumed.steps,
                 .samples_before = stage.resolved.plan.resumed.samples,
                 .in_step = stage.resolved.plan.taxonomy.timing == "synchronous"},
                metric),
      data_s_(stage.data_s),
      steps_before_(stage.resolved.plan.resumed.steps) {
  if (stage.folder.empty()) return;
  steps_.emplace(stage.folder + "/series.csv", "step,time_s,loss,rate,samples\n");
  evaluations_.emplace(stage.folder + "/evaluations.csv",
                       "step,time_s,epoch,samples,loss,quality\n");
}

void Diary::step(const StepRow& own) {
  StepRow row = own;
  row.step += steps_before_;
  if (steps_)
    steps_->append(fmt::format("{},{},{},{},{}\n", row.step, row.time_s + data_s_, row.loss,
                               row.rate, row.samples));
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
