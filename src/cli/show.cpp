// `tutti show`: finished runs side by side, from their run.json.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "cli/commands.h"
#include "core/described_json.h"
#include "core/error.h"
#include "core/printable.h"
#include "core/units.h"
#include "jobs/run_status.h"
#include "testbed/run_files.h"

namespace tutti {
namespace {

RecordedRun record_of(const std::string& folder) {
  // A run that shares a learning curve has its quality in the folder beside it.
  std::error_code failed;
  if (std::filesystem::exists(folder + "/shared_curve", failed)) return read_run(folder).record;
  if (!std::filesystem::exists(folder + "/run.json", failed) &&
      std::filesystem::exists(folder + "/compare.json", failed))
    throw DataError(
        fmt::format("{0}: is a comparison, not a run; `tutti report {0}` shows it, and "
                    "`tutti show {0}/runs/*` its runs",
                    folder));
  if (!std::filesystem::exists(folder + "/run.json", failed))
    throw DataError(
        fmt::format("{}: is not the folder of a run that has ended: it has no run.json; give the "
                    "folder that `tutti train` names at its end",
                    folder));
  return read_recorded_run(folder + "/run.json");
}

// Figures, or a dash where there is none.
std::string quality_cell(const std::optional<double>& quality) {
  return quality ? human_quality(*quality) : "-";
}

std::string seconds_cell(const std::optional<double>& seconds) {
  return seconds ? human_quantity(*seconds, Unit::kSeconds) : "-";
}

void print_row(const RecordedRun& run, size_t name_width) {
  // Without a target, or where only costs were simulated, there was nothing to miss.
  const RecordedQuality& quality = run.quality;
  const char* missed = quality.target && quality.best ? "missed" : "-";
  fmt::print(
      "{:<{}} {:<8} {:>3} {:<9} {:>10} {:>9} {:>8} {:>9} {:>9} {:>10}{}\n", printable(run.name),
      name_width, printable(run.fabric), run.workers, printable(run.obtained),
      quality_cell(quality.final_test), quality_cell(quality.last), quality_cell(quality.best),
      quality.reached ? seconds_cell(run.time.to_target_s) : missed, seconds_cell(run.time.total_s),
      run.bytes_sent ? human_quantity(static_cast<double>(*run.bytes_sent), Unit::kBytes) : "-",
      ended_well(run.status) ? "" : "  " + printable(run.status));
}

}  // namespace

int run_show(const ShowOptions& options) {
  std::vector<RecordedRun> runs;
  for (const std::string& folder : options.runs) runs.push_back(record_of(folder));
  if (options.json) {
    std::cout << json_of(runs).dump() << "\n";
    return 0;
  }
  size_t name_width = 8;
  for (const RecordedRun& run : runs) name_width = std::max(name_width, printable(run.name).size());
  fmt::print("{:<{}} {:<8} {:>3} {:<9} {:>10} {:>9} {:>8} {:>9} {:>9} {:>10}\n", "run", name_width,
             "fabric", "n", "clock", "final test", "final val", "best val", "to target", "total",
             "sent");
  for (const RecordedRun& run : runs) print_row(run, name_width);
  return 0;
}

}  // namespace tutti
