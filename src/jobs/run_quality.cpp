#include "jobs/run_quality.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/quality.h"
#include "core/units.h"
#include "jobs/rate_to_try.h"
#include "jobs/run_pictures.h"

namespace tutti {
namespace {

constexpr double kLeastGain = 0.1;  // share of the way from chance to perfect; less is noise
constexpr double kLostShare = 0.5;

const std::string kStandardise = "try task.data.standardise = true; ";

// Names what to try after a run at chance.
std::string remedy_for(const RunRecord& record, const Job& job) {
  return (record.unscaled ? kStandardise : "") + rate_to_try(job);
}

}  // namespace

QualityFigures quality_of(const RunRecord& record, const Job& job) {
  QualityFigures figures;
  for (const NodeReport& node : record.nodes)
    if (node.test_quality >= 0) figures.final_test = node.test_quality;
  for (const EvaluationRow& row : record.evaluations) {
    if (std::isnan(figures.first)) figures.first = row.quality;
    if (std::isnan(figures.best) || is_better(row.quality, figures.best, record.higher_is_better))
      figures.best = row.quality;
    figures.last = row.quality;
    if (!figures.reached && reaches(row.quality, job.task.target, record.higher_is_better)) {
      figures.reached = true;
      figures.at_target = row;
      figures.to_target_s = row.time_s + (record.virtual_clock ? 0 : record.data_s);
    }
  }
  if (record.status == RunStatus::kCollapsed) {  // it has lost again what it reached
    figures.reached = false;
    figures.to_target_s = NAN;
  }
  return figures;
}

RecordedQuality recorded_quality(const RunRecord& record, const Job& job,
                                 const QualityFigures& figures) {
  return {.metric = record.metric,
          .higher_is_better = record.higher_is_better,
          .best = known(figures.best),
          .last = known(figures.last),
          .final_test = known(figures.final_test),
          .target = job.task.target > 0 ? std::optional(job.task.target) : std::nullopt,
          .reached = figures.reached,
          .at_chance = is_at_chance(record, figures),
          .remedy = is_at_chance(record, figures) ? remedy_for(record, job) : ""};
}

bool has_collapsed(double first, double best, double last, bool higher_is_better, double chance) {
  if (!std::isfinite(best) || !std::isfinite(first)) return false;
  if (!std::isfinite(last)) return true;
  if (higher_is_better) {
    const double gain = best - chance;
    return gain > kLeastGain * (1 - chance) && best - last > kLostShare * gain;
  }
  // No squared error corresponds to chance. The first measurement stands for it or, if that was
  // already the best, the best itself.
  return last - best > kLostShare * std::max(first - best, best);
}

void judge_quality(RunRecord& record, const Job& job) {
  if (record.status == RunStatus::kDiverged)
    record.error += "; " + (record.unscaled ? kStandardise : "") + lower_rate_to_try(job);
  if (record.status != RunStatus::kDone) return;
  const QualityFigures figures = quality_of(record, job);
  if (!has_collapsed(figures.first, figures.best, figures.last, record.higher_is_better,
                     record.chance))
    return;
  record.status = RunStatus::kCollapsed;
  record.error = fmt::format(
      "{} on validation was {:.4g} at its best and {:.4g} at the end, whose parameters are kept; "
      "try a lower rate, or stop at the target (task.stop_at_target)",
      record.metric, figures.best, figures.last);
}

bool is_at_chance(const RunRecord& record, const QualityFigures& figures) {
  if (record.status != RunStatus::kDone || !record.higher_is_better || record.chance <= 0 ||
      record.validation_samples == 0 || !std::isfinite(figures.last))
    return false;
  constexpr double kDeviations = 2;
  const double variance = record.chance * (1 - record.chance);
  return figures.last <=
         record.chance +
             kDeviations * std::sqrt(variance / static_cast<double>(record.validation_samples));
}

std::string quality_text(const RunRecord& record, const Job& job, const QualityFigures& figures) {
  if (std::isnan(figures.best)) return "";
  std::string text = fmt::format("quality   {}", record.metric);
  if (!std::isnan(figures.final_test))
    text += fmt::format(" {} on test at the end,", human_quality(figures.final_test));
  text += fmt::format(" {} on validation at the end, {} on validation at best\n",
                      human_quality(figures.last), human_quality(figures.best));
  if (is_at_chance(record, figures))
    text += fmt::format("chance    {} {:.4f} is no better than guessing ({:.4f}); {}\n",
                        record.metric, figures.last, record.chance, remedy_for(record, job));
  if (job.task.target <= 0) return text;  // without a target none can be missed
  return text + (figures.reached
                     ? fmt::format("target    {} reached after {} ({} clock)\n", job.task.target,
                                   human_quantity(figures.to_target_s, Unit::kSeconds),
                                   record.virtual_clock ? "virtual" : "wall")
                     : fmt::format("target    {} not reached\n", job.task.target));
}

}  // namespace tutti
