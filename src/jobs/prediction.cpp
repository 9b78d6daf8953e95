#include "jobs/prediction.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <ctime>
#include <filesystem>

#include "core/described_json.h"
#include "core/error.h"
#include "core/shallow_json.h"
#include "core/units.h"
#include "data/fingerprint.h"
#include "jobs/job.h"
#include "jobs/record_schema.h"
#include "jobs/run_folder.h"
#include "jobs/versions.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kMostBytes = 1 << 20;  // a prediction has a few hundred
constexpr const char* kRemedy = "remove it, or let `tutti advise --write` write it again";

// Another seed is another run of the same prediction; what follows a run does not change its time.
std::string job_fingerprint(const Job& job) {
  Job what;
  what.task = job.task;
  what.task.seed = 1;
  what.optimizer = job.optimizer;
  what.strategy_kind = job.strategy_kind;
  what.strategy = job.strategy;
  what.cluster.workers = job.cluster.workers;
  return text_fingerprint(resolved_toml(what));
}

std::string cluster_fingerprint(const ClusterConfig& cluster) {
  Job what;
  what.cluster = cluster;
  return text_fingerprint(resolved_toml(what));
}

int64_t hosts_of_workers(const ClusterConfig& cluster) {
  if (cluster.fabric == FabricKind::kVirtual) return hosts_of(cluster, cluster.workers);
  return cluster.remote + 1;  // each that joins counts as a host of its own
}

// Both ends of an interval are told where the error is as large as this, as the advice tells them:
// as many times longer as the one is, so many times shorter is the other one.
bool is_wide(double error) { return error > 0.2; }
double least_of(const RecordedPrediction& p) { return p.predicted_s / (1 + p.error); }
double most_of(const RecordedPrediction& p) { return p.predicted_s * (1 + p.error); }

[[noreturn]] void refuse_prediction(const std::string& path, const std::string& problem) {
  throw DataError(fmt::format("{} {}; {}", path, problem, kRemedy));
}

}  // namespace

void visit(RecordVisitor& v, Prediction& p) {
  const auto known = [&](double value, const char* key) {
    if (v.reads()) v.require(std::isfinite(value) && value >= 0, key, "is not a number from 0 up");
  };
  v.field("schema", p.schema, "Version of this description: 1");
  v.field("task", p.task, "Fingerprint of the task that it holds for");
  v.field("job", p.job, "Fingerprint of the job without its cluster and its seed");
  v.field("cluster", p.cluster, "Fingerprint of the cluster");
  v.field("cluster_name", p.cluster_name, "What the cluster was called");
  v.field("strategy", p.strategy, "Name of the variant");
  v.field("workers", p.workers, "`cluster.workers`");
  v.field("hosts", p.hosts, "Machines of the workers");
  v.field("threads", p.threads, "`cluster.threads`");
  v.field("time_s", p.time_s, "Time to target");
  known(p.time_s, "time_s");
  v.field("error", p.error, "Half the width of its interval of 90 %, relative");
  known(p.error, "error");
  v.field("error_of_simulation", p.error_of_simulation, "The same for a simulated run");
  known(p.error_of_simulation, "error_of_simulation");
  v.field("made", p.made, "When, UTC");
  v.field("program", p.program, "Version of the program");
}

std::string moment_now() {
  const std::time_t now = std::time(nullptr);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%FT%TZ", std::gmtime(&now));
  return text.data();
}

Prediction prediction_for(const Job& job, const std::string& name) {
  Prediction prediction;
  prediction.job = job_fingerprint(job);
  prediction.cluster = cluster_fingerprint(job.cluster);
  prediction.cluster_name = name;
  prediction.workers = job.cluster.workers;
  prediction.hosts = hosts_of_workers(job.cluster);
  prediction.threads = job.cluster.threads;
  prediction.made = moment_now();
  prediction.program = library_versions().tutti;
  return prediction;
}

std::string prediction_file_of(const std::string& job_file) {
  return fs::path(job_file).replace_extension("prediction.json").string();
}

std::optional<Prediction> read_prediction(const std::string& path) {
  std::error_code failed;
  if (!fs::exists(path, failed)) return std::nullopt;
  if (!fs::is_regular_file(path, failed)) refuse_prediction(path, "is no file");
  if (fs::file_size(path, failed) > kMostBytes || failed)
    refuse_prediction(path, "is too large for a prediction");
  const nlohmann::json whole = parse_shallow_json(read_file(path));
  if (!whole.is_object()) refuse_prediction(path, "is damaged: is no JSON object");
  require_schema(whole, {1, 1}, path, kRemedy);
  try {
    return described_by<Prediction>(whole);
  } catch (const Mismatch& mismatch) {
    refuse_prediction(path, fmt::format("is damaged: {} {}", mismatch.place, mismatch.problem));
  }
}

std::string why_not_of(const Prediction& prediction, const Job& job) {
  if (prediction.time_s <= 0) return "it has no time";
  if (job_fingerprint(job) != prediction.job) return "the job has other settings";
  const ClusterConfig& cluster = job.cluster;
  if (cluster.fabric == FabricKind::kVirtual)
    return cluster_fingerprint(cluster) == prediction.cluster ? "" : "the cluster is another one";
  if (cluster.threads != prediction.threads || !cluster.thread_counts.empty())
    return fmt::format("it is of {} thread{} a worker", prediction.threads,
                       prediction.threads == 1 ? "" : "s");
  if (hosts_of_workers(cluster) != prediction.hosts)
    return fmt::format("it is of workers on {} machine{}", prediction.hosts,
                       prediction.hosts == 1 ? "" : "s");
  return "";
}

RecordedPrediction held_against(const Prediction& prediction, std::optional<double> took_s,
                                bool simulated) {
  RecordedPrediction result;
  result.predicted_s = prediction.time_s;
  result.error = simulated ? prediction.error_of_simulation : prediction.error;
  if (!took_s || !std::isfinite(*took_s)) return result;
  result.took_s = took_s;
  result.off = *took_s / prediction.time_s - 1;
  result.within = is_wide(result.error) ? least_of(result) <= *took_s && *took_s <= most_of(result)
                                        : std::abs(*result.off) <= result.error;
  return result;
}

std::string in_words(const RecordedPrediction& p, bool simulated) {
  const auto time = [](double seconds) { return human_quantity(seconds, Unit::kSeconds); };
  const std::string said =
      is_wide(p.error)
          ? fmt::format("{}, {} to {}", time(p.predicted_s), time(least_of(p)), time(most_of(p)))
          : fmt::format("{} +- {}", time(p.predicted_s), time(p.error * p.predicted_s));
  if (!p.took_s) return said + ", but the target was missed";
  const double percent = std::abs(*p.off) * 100;
  const std::string by = percent < 0.05 ? "as predicted"
                                        : fmt::format("{:.{}f} % {}", percent, percent < 1 ? 1 : 0,
                                                      *p.off > 0 ? "more" : "less");
  return fmt::format("{}, took {} ({}): {}, {}", said, time(*p.took_s),
                     simulated ? "simulated" : "measured", by,
                     p.within ? "within the error" : "outside the error");
}

}  // namespace tutti
