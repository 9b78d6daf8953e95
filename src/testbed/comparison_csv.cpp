// compare.csv: one line per strategy and seed.
#include <fmt/format.h>

#include "testbed/summary.h"

namespace tutti {
namespace {

struct QualityColumn {
  const char* title;
  OverSeeds ComparedQuality::*quality;
};
constexpr QualityColumn kQualityColumns[] = {
    {"best_quality", &ComparedQuality::best},
    {"final_quality", &ComparedQuality::final_test},
    {"validation_best", &ComparedQuality::validation_best},
    {"validation_final", &ComparedQuality::validation_final},
    {"test_final", &ComparedQuality::test_final},
    {"quality_at_equal_samples", &ComparedQuality::at_equal_samples},
    {"quality_at_equal_time", &ComparedQuality::at_equal_time}};

std::string quoted_cell(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string cell_of(const OverSeeds& figure, size_t seed) {
  const bool known = figure && seed < figure->values.size() && figure->values[seed];
  return known ? fmt::format(",{}", *figure->values[seed]) : ",";
}

}  // namespace

std::string comparison_csv(const Comparison& comparison) {
  std::string csv = "strategy,seed,kind,structure,timing,fabric,workers,obtained,status";
  for (const QualityColumn& column : kQualityColumns) csv += fmt::format(",{}", column.title);
  for (const NamedFigure& figure : figures_over_seeds()) csv += fmt::format(",{}", figure.name);
  csv += "\n";
  for (const ComparedStrategy& row : comparison.strategies)
    for (size_t i = 0; i < row.seeds.size(); ++i) {
      csv += fmt::format("{},{},{},{},{},{},{},{},{}", quoted_cell(row.name), row.seeds[i],
                         quoted_cell(row.kind), quoted_cell(row.taxonomy.structure),
                         quoted_cell(row.taxonomy.timing), quoted_cell(row.fabric),
                         row.workers.value_or(0), quoted_cell(row.obtained),
                         quoted_cell(i < row.statuses.size() ? row.statuses[i] : row.status));
      for (const QualityColumn& column : kQualityColumns)
        csv += cell_of(row.quality.*column.quality, i);
      for (const NamedFigure& figure : figures_over_seeds()) csv += cell_of(row.*figure.figure, i);
      csv += "\n";
    }
  return csv;
}

}  // namespace tutti
