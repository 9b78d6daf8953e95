#include "strategies/training_progress.h"

#include "core/quality.h"

namespace tutti {

bool TrainingProgress::is_due() const {
  constexpr double kRounding = 1e-9;  // what is reached but for this is reached
  return epochs + kRounding >= next_evaluation;
}

bool TrainingProgress::evaluate(const TaskConfig& task, bool classification, Recorder& recorder,
                                const std::function<EvaluationRow()>& make_row) {
  begin_evaluation(task);
  const EvaluationRow row = make_row();
  recorder.evaluation(row);
  end_evaluation(task, classification, row.quality);
  return ends_at_target(task);
}

void TrainingProgress::begin_evaluation(const TaskConfig& task) {
  next_evaluation = next_due(task.eval_every, epochs);
}

void TrainingProgress::end_evaluation(const TaskConfig& task, bool classification, double quality) {
  target_reached = reaches(quality, task.target, classification) ? 1 : 0;
}

StepRow TrainingProgress::step_row(double time_s, double loss, double rate, int64_t share) const {
  return {.step = whole_steps(),
          .time_s = time_s,
          .loss = loss,
          .rate = rate,
          .samples = samples,
          .share = share};
}

EvaluationRow TrainingProgress::evaluation_row(double time_s, const Quality& quality) const {
  return {.step = whole_steps(),
          .time_s = time_s,
          .epoch = epochs,
          .samples = samples,
          .loss = quality.loss,
          .quality = quality.quality};
}

}  // namespace tutti
