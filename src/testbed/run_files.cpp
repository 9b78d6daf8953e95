#include "testbed/run_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>

#include "core/error.h"
#include "core/quality.h"
#include "jobs/run_folder.h"
#include "jobs/run_record.h"
#include "jobs/run_status.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSharedCurve = "shared_curve";

[[noreturn]] void damaged(const std::string& path, const std::string& what) {
  throw DataError(
      fmt::format("{}: is damaged: {}; remove the folder and run it again", path, what));
}

template <class T>
const char* parse_cell(const char* at, const char* end, T& value) {
  const auto [next, error] = std::from_chars(at, end, value);
  if (error != std::errc{}) return nullptr;
  return next < end && (*next == ',' || *next == '\n') ? next + 1 : nullptr;
}

// Reads step,time_s,loss,rate,samples. A writer that was killed leaves half a line, or nothing.
// Whole lines are used, and `missing` says what is not there.
Series read_series(const std::string& path, std::string& missing) {
  std::string text = read_file(path);
  const size_t whole = text.rfind('\n') + 1;  // 0 without any whole line
  if (whole < text.size() || text.empty()) {
    missing = fmt::format("{}: ends within line {}; the steps from there on are missing", path,
                          1 + std::count(text.begin(), text.end(), '\n'));
    text.resize(whole);
    if (text.empty()) return {};
  }
  Series series;
  const char* const end = text.data() + text.size();
  const size_t head = text.find('\n');
  if (text.compare(0, head, "step,time_s,loss,rate,samples") != 0)
    damaged(path, "its first line does not name the columns");
  for (const char* at = text.data() + head + 1; at < end;) {
    int64_t step = 0, samples = 0;
    double time_s = 0, loss = 0, rate = 0;
    at = parse_cell(at, end, step);
    if (at) at = parse_cell(at, end, time_s);
    if (at) at = parse_cell(at, end, loss);
    if (at) at = parse_cell(at, end, rate);
    if (at) at = parse_cell(at, end, samples);
    if (!at) damaged(path, fmt::format("line {} cannot be read", series.step.size() + 2));
    series.step.push_back(step);
    series.time_s.push_back(time_s);
    series.loss.push_back(loss);
    series.samples.push_back(samples);
  }
  return series;
}

RunFiles read_plain(const std::string& folder) {
  if (!fs::is_directory(folder))
    throw DataError(fmt::format("{}: there is no such folder of a run", folder));
  if (!fs::exists(folder + "/run.json"))
    throw DataError(fmt::format("{}: has no run.json; the run did not end, run it again", folder));
  RunFiles run;
  run.folder = folder;
  run.record = read_recorded_run(folder + "/run.json");
  try {
    run.job = load_job(folder + "/job.toml", {});
    run.series = read_series(folder + "/series.csv", run.missing);
    const RecordedTime& time = run.record.time;
    if (says(run.record.obtained, Obtained::kMeasured) && !time.series_count_data)
      for (double& time_s : run.series.time_s) time_s += time.data_s;
    // Rank 0 or a server wrote the series; workers at a pace of their own need not have taken as
    // many steps.
    size_t steps = 0;
    for (const RecordedNode& node : run.record.nodes)
      if (node.rank == 0) {
        const auto own = static_cast<uint64_t>(*node.steps);
        steps = std::min(own, run.record.steps.value_or(own));
      }
    if (ended_well(run.record.status) && run.series.step.size() < steps)
      run.missing = fmt::format("{}/series.csv: has {} rows for {} steps; the others are missing",
                                folder, run.series.step.size(), steps);
  } catch (const ConfigError& error) {
    damaged(folder + "/job.toml", error.what());
  }
  return run;
}

}  // namespace

RunFiles read_run(const std::string& folder) {
  RunFiles run = read_plain(folder);
  const std::string note = folder + "/" + kSharedCurve;
  if (!fs::exists(note)) return run;
  std::string other = read_file(note);
  while (!other.empty() && other.back() == '\n') other.pop_back();
  constexpr size_t kLongestName = 255;
  if (other.empty() || other.size() > kLongestName || other == ".." ||
      other.find('/') != std::string::npos || other.find('\0') != std::string::npos)
    damaged(note, "it does not hold the name of a folder beside this one");
  // A folder may be looked at without those beside it: then its quality is not known.
  const std::string path = (fs::path(folder).lexically_normal() / ".." / other).string();
  if (!fs::exists(path + "/run.json")) return run;
  const RunFiles source = read_plain(path);
  stitch(run, source);
  return run;
}

RunFiles missing_run(const std::string& folder, const Job& job, RunStatus status,
                     const std::string& error) {
  RunRecord nothing;
  nothing.status = status;
  nothing.error = error;
  nothing.virtual_clock = job.cluster.fabric == FabricKind::kVirtual;
  RunFiles run;
  run.folder = folder;
  run.job = job;
  RecordedRun& record = run.record = recorded(nothing, run.job);
  // Nothing of it was measured, so nothing is zero.
  record.time = {};
  record.energy = {};
  record.co2e = {};
  record.cost = {};
  record.staleness = {};
  record.age_s = {};
  record.peak_memory_bytes = record.utilisation = record.samples_per_s = record.update_order = {};
  record.steps = record.samples = record.bytes_sent = record.messages = {};
  return run;
}

void note_shared_curve(const std::string& folder, const std::string& other) {
  write_file(folder + "/" + kSharedCurve, other + "\n");
}

void stitch(RunFiles& run, const RunFiles& source) {
  std::map<int64_t, const RecordedEvaluation*> measured;
  for (const RecordedEvaluation& row : source.record.evaluations)
    if (row.step) measured[*row.step] = &row;
  const RecordedQuality& quality = run.record.quality = source.record.quality;
  std::optional<double>& to_target_s = run.record.time.to_target_s;
  to_target_s.reset();
  for (RecordedEvaluation& row : run.record.evaluations) {
    const auto found = row.step ? measured.find(*row.step) : measured.end();
    if (found == measured.end()) continue;
    row.loss = found->second->loss;
    row.quality = found->second->quality;
    if (!to_target_s && row.quality &&
        reaches(*row.quality, quality.target.value_or(0), quality.higher_is_better))
      to_target_s = row.time_s;  // its own time: the curve is shared, the clock is not
  }
  for (size_t i = 0; i < run.series.loss.size(); ++i)
    run.series.loss[i] = i < source.series.loss.size() ? source.series.loss[i] : NAN;
  if (says(source.record.status, RunStatus::kDiverged) ||
      says(source.record.status, RunStatus::kCollapsed)) {
    run.record.status = source.record.status;
    run.record.error = source.record.error;
  }
  if (says(run.record.status, RunStatus::kCollapsed))
    to_target_s.reset();  // what it reached is lost again
  run.curve_of = source.folder;
}

}  // namespace tutti
