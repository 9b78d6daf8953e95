// The quality of a run: what was measured on validation samples along the way and at the end, on
// test samples at the end, and whether the run has lost again what it had learnt.
#pragma once

#include <cmath>
#include <nlohmann/json_fwd.hpp>

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

nlohmann::json quality_json(const RunRecord& record, const Job& job, const QualityFigures& figures);

// Whether what is left at the end is worth less than half of the best: docs/definitions.md.
bool has_collapsed(double first, double best, double last, bool higher_is_better, double chance);

// Makes the status of a run that is done and has collapsed say so, with the numbers.
void judge_quality(RunRecord& record, const Job& job);

// Whether a run that is done has learnt nothing: what it ends with cannot be told from guessing
// among the classes, given how many samples it was measured on.
bool is_at_chance(const RunRecord& record, const QualityFigures& figures);

// For people, a few lines.
std::string quality_text(const RunRecord& record, const Job& job, const QualityFigures& figures);

}  // namespace tutti
