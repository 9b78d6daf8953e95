// Everything that rank 0 writes while a run goes on: series.csv, evaluations.csv and progress.
#pragma once

#include <optional>

#include "jobs/participant.h"
#include "jobs/run_folder.h"

namespace tutti {

class Diary {
 public:
  Diary(const Stage& stage, const std::string& metric);
  void step(const StepRow& own);  // counted from the beginning of this run
  void evaluation(const EvaluationRow& row);
  void end();

 private:
  Progress progress_;
  double data_s_;  // added to times in files: the clock of the nodes starts after reading
  int64_t steps_before_;                           // of the run that this one resumes
  std::optional<AppendFile> steps_, evaluations_;  // of runs that keep files
};

}  // namespace tutti
