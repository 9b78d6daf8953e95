// Everything that is written while a run goes on, by the one node that keeps the record:
// series.csv, evaluations.csv and progress. When that node is lost, another one goes on where it
// has stopped.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "jobs/participant.h"
#include "jobs/record_book.h"
#include "jobs/run_folder.h"

namespace tutti {

// The length of a run, as its plan says.
Course course_of(const Plan& plan);

class Diary {
 public:
  // `continues`: the node that kept the record before is lost.
  Diary(const Stage& stage, Keeping keeping, bool continues);

  // Counted from the beginning of this run.
  void step(const StepRow& own);
  // The same of a row that its predecessor may have written before it was lost.
  void catch_up(const StepRow& own);
  void look();  // for measurements, whoever has made them
  void end();

 private:
  void continue_series(const std::string& path);
  int64_t count(const StepRow& own) const;
  void write(const EvaluationRow& row);

  const Keeping keeping_;
  const Course course_;
  Progress progress_;
  double data_s_;  // added to times in files: the clock of the nodes starts after reading
  RecordBook::Reader measurements_;
  const bool continues_;
  StepRow last_;                                   // as it was written
  std::optional<AppendFile> steps_, evaluations_;  // of runs that keep files
};

// What nobody was left to write: all measurements are in the folder then, and only whole lines.
void complete_diary(const std::string& folder, const std::vector<EvaluationRow>& evaluations,
                    double data_s);

}  // namespace tutti
