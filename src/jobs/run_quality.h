// The quality of a run: what was measured on validation samples along the way and at the end, on
// test samples at the end, and whether the run has lost again what it had learnt.
#pragma once

#include <cmath>

#include "jobs/run_record.h"

namespace tutti {

struct QualityFigures {
  double first = NAN, best = NAN, last = NAN;  // on validation samples
  double final_test = NAN;                     // on test samples
  double to_target_s = NAN;
  bool reached = false;
  EvaluationRow at_target;
};

QualityFigures quality_of(const RunRecord& record, const Job& job);

RecordedQuality recorded_quality(const RunRecord& record, const Job& job,
                                 const QualityFigures& figures);

// Returns whether the run has lost more than half of its best gain: see docs/definitions.md.
bool has_collapsed(double first, double best, double last, bool higher_is_better, double chance);

// Sets the status of a run that is done but has collapsed, and says so with the numbers.
void judge_quality(RunRecord& record, const Job& job);

// Returns whether a run that is done has learnt nothing: its final quality cannot be told from
// guessing, given the number of samples that it was measured on.
bool is_at_chance(const RunRecord& record, const QualityFigures& figures);

// Returns a few lines for people.
std::string quality_text(const RunRecord& record, const Job& job, const QualityFigures& figures);

}  // namespace tutti
