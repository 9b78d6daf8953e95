#include "testbed/run_files.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>

#include "core/error.h"
#include "jobs/run_folder.h"
#include "jobs/run_record.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kSharedCurve = "shared_curve";

[[noreturn]] void damaged(const std::string& path, const std::string& what) {
  throw DataError(
      fmt::format("{}: is damaged: {}; remove the folder and run it again", path, what));
}

json read_record(const std::string& path) {
  const json record = json::parse(read_file(path), nullptr, false);
  if (!record.is_object()) damaged(path, "it is not JSON");
  const json schema = record.value("schema", json());
  if (schema != kRunSchema)
    throw DataError(
        fmt::format("{}: has schema {}, this program reads schema {}; run the job again "
                    "with this version, or read it with the version that wrote it",
                    path, schema.dump(), kRunSchema));
  for (const char* key :
       {"status", "quality",   "time",  "evaluations",  "nodes",    "steps",   "strategy",
        "fabric", "workers",   "seed",  "obtained",     "taxonomy", "energy",  "co2e",
        "cost",   "staleness", "age_s", "update_order", "links",    "timeline"})
    if (!record.contains(key)) damaged(path, fmt::format("\"{}\" is missing", key));
  return record;
}

template <class T>
const char* parse_cell(const char* at, const char* end, T& value) {
  const auto [next, error] = std::from_chars(at, end, value);
  if (error != std::errc{}) return nullptr;
  return next < end && (*next == ',' || *next == '\n') ? next + 1 : nullptr;
}

// step,time_s,loss,rate,samples
Series read_series(const std::string& path) {
  const std::string text = read_file(path);
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
  run.record = read_record(folder + "/run.json");
  try {
    run.job = load_job(folder + "/job.toml", {});
    run.series = read_series(folder + "/series.csv");
    const json& time = run.record.at("time");
    if (run.record.at("obtained") == "measured")
      for (double& time_s : run.series.time_s) time_s += time.at("data_s").get<double>();
    // Rank 0 wrote the series; workers at a pace of their own need not have taken as many steps.
    size_t steps = 0;
    for (const json& node : run.record.at("nodes"))
      if (node.at("rank") == 0) steps = node.at("steps").get<size_t>();
    if (run.record.at("status") == "done" && run.series.step.size() < steps)
      damaged(folder + "/series.csv",
              fmt::format("{} rows for {} steps", run.series.step.size(), steps));
  } catch (const json::exception& error) {
    damaged(folder + "/run.json", error.what());
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
  // A folder may be looked at without those beside it: then its quality is not known.
  const std::string path = (fs::path(folder).lexically_normal() / ".." / other).string();
  if (!fs::exists(path + "/run.json")) return run;
  const RunFiles source = read_plain(path);
  stitch(run, source);
  return run;
}

RunFiles missing_run(const std::string& folder, const Job& job, const std::string& status,
                     const std::string& error) {
  RunRecord nothing;
  nothing.status = status;
  nothing.error = error;
  nothing.virtual_clock = job.cluster.fabric == "virtual";
  RunFiles run;
  run.folder = folder;
  run.job = job;
  run.record = to_json(nothing, run.job);
  // Nothing of it was measured, so nothing is zero.
  for (const char* key :
       {"time", "energy", "co2e", "cost", "peak_memory_bytes", "utilisation", "steps", "samples",
        "samples_per_s", "bytes_sent", "messages", "staleness", "age_s", "update_order"})
    run.record[key] = nullptr;
  return run;
}

void note_shared_curve(const std::string& folder, const std::string& other) {
  write_file(folder + "/" + kSharedCurve, other + "\n");
}

void stitch(RunFiles& run, const RunFiles& source) {
  try {
    std::map<int64_t, const json*> measured;
    for (const json& row : source.record.at("evaluations")) measured[row.at("step")] = &row;
    for (json& row : run.record.at("evaluations")) {
      const auto found = measured.find(row.at("step").get<int64_t>());
      if (found == measured.end()) continue;
      row["loss"] = found->second->at("loss");
      row["quality"] = found->second->at("quality");
    }
    run.record["quality"] = source.record.at("quality");
  } catch (const json::exception& error) {
    damaged(run.folder + "/run.json", error.what());
  }
  for (size_t i = 0; i < run.series.loss.size(); ++i)
    run.series.loss[i] = i < source.series.loss.size() ? source.series.loss[i] : NAN;
  if (source.record.at("status") == "diverged") {
    run.record["status"] = "diverged";
    run.record["error"] = source.record.value("error", "");
  }
  run.curve_of = source.folder;
}

}  // namespace tutti
