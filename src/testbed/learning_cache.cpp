#include "testbed/learning_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/described_json.h"
#include "core/error.h"
#include "data/fingerprint.h"
#include "fabric/outcome.h"
#include "jobs/run_folder.h"
#include "jobs/versions.h"

namespace tutti {
namespace {

using nlohmann::json;

// Raise it when the same job learns otherwise than before.
constexpr int kArithmetic = 2;
constexpr const char* kKind = "tutti lesson";

struct LessonFile {
  std::string kind = kKind;
  Lesson lesson;
  std::optional<double> time_s;  // in lesson.time_s where it holds
  std::string timed_on;          // the fingerprint of a cluster
};

void visit(RecordVisitor& v, LessonFile& file) {
  Lesson& lesson = file.lesson;
  v.field("kind", file.kind, "`tutti lesson`");
  v.field("exit_code", lesson.exit_code, "How the run ended");
  v.field("reached", lesson.reached, "Whether it reached the target");
  v.field("steps", lesson.steps, "Steps to the target");
  v.field("evaluations", lesson.evaluations, "Evaluations until then");
  v.field("best_quality", lesson.best_quality, "The best that was measured");
  v.field("time_s", file.time_s, "Virtual time to the target", Presence::kWhenKnown);
  v.field("timed_on", file.timed_on, "Fingerprint of the cluster on which it took that",
          Presence::kWhenKnown);
}

// Whether it changes what is learned when messages take another time.
bool depends_on_times(const Job& job) {
  const Taxonomy taxonomy = job.strategy->taxonomy();
  return taxonomy.timing != Timing::kSynchronous ||
         taxonomy.stragglers.find("left out") != std::string_view::npos;
}

std::string toml_of(const ClusterConfig& cluster) {
  Job job;
  job.cluster = cluster;
  return resolved_toml(job);
}

// What of a cluster decides what is learned on it: how many workers, and how they differ.
ClusterConfig decisive(const Job& learner) {
  ClusterConfig cluster;
  const ClusterConfig& own = learner.cluster;
  cluster.fabric = own.fabric;
  cluster.workers = own.workers;
  cluster.threads = own.threads;
  if (own.workers == 1) return cluster;
  cluster.racks = own.racks;
  cluster.nodes_per_host = own.nodes_per_host;
  cluster.colocated = own.colocated;
  cluster.thread_counts = own.thread_counts;
  cluster.faults = own.faults;
  if (!depends_on_times(learner)) return cluster;
  cluster.speed_factors = own.speed_factors;
  cluster.stragglers = own.stragglers;
  return cluster;
}

}  // namespace

LearningCache::LearningCache(std::string folder, const TaskIdentity& task, const Job& declared,
                             Announce note)
    : folder_(std::move(folder)),
      task_(task.fingerprint),
      cluster_(text_fingerprint(toml_of(declared.cluster))),
      note_(std::move(note)) {}

std::string LearningCache::folder_of(const Job& learner) const {
  Job what;
  what.task = learner.task;
  what.optimizer = learner.optimizer;
  what.strategy_kind = learner.strategy_kind;
  what.strategy = learner.strategy;
  what.cluster = decisive(learner);
  const Versions versions = library_versions();
  return fmt::format("{}/{}", folder_,
                     text_fingerprint(fmt::format("{}\n{}\n{}\n{}\n{}", kArithmetic, versions.tutti,
                                                  versions.libtorch, task_, resolved_toml(what))));
}

std::string LearningCache::file_of(const Job& learner) const {
  return fmt::format("{}/{}.json", folder_of(learner),
                     depends_on_times(learner) ? cluster_ : "every-cluster");
}

std::optional<Lesson> LearningCache::read(const std::string& path,
                                          const std::string& timed_on) const {
  std::string problem;
  try {
    auto file = described_by<LessonFile>(json::parse(read_file(path)));
    if (file.timed_on == timed_on) file.lesson.time_s = file.time_s.value_or(0);
    if (file.kind == kKind) return file.lesson;
    problem = "is something else";
  } catch (const Mismatch& mismatch) {
    problem = fmt::format("is damaged: {} {}", mismatch.place, mismatch.problem);
  } catch (const json::exception&) {
    problem = "is damaged: is no JSON";
  } catch (const DataError& error) {
    problem = error.what();
  }
  note_(fmt::format("{} is ignored, because it {}; what it held is learned anew", path, problem));
  return std::nullopt;
}

std::optional<KeptLesson> LearningCache::find(const Job& learner) const {
  namespace fs = std::filesystem;
  if (folder_.empty()) return std::nullopt;
  const std::string own = file_of(learner);
  std::error_code failed;
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder_of(learner), failed))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  // The cluster's own first; of others always the same one.
  std::sort(files.begin(), files.end(), [&](const std::string& a, const std::string& b) {
    return (a == own) != (b == own) ? a == own : a < b;
  });
  const std::string here = text_fingerprint(toml_of(learner.cluster));
  for (const std::string& path : files)
    if (const std::optional<Lesson> lesson = read(path, here))
      return KeptLesson{*lesson, path != own};
  return std::nullopt;
}

void LearningCache::keep(const Job& learner, const Lesson& lesson) {
  // Whoever was ended from outside has learned nothing that holds another time.
  const bool holds = lesson.exit_code == kExitDone || lesson.exit_code == kExitDiverged;
  if (folder_.empty() || !holds) return;
  try {
    std::filesystem::create_directories(folder_of(learner));
    LessonFile file{.lesson = lesson, .time_s = {}, .timed_on = ""};
    if (lesson.reached && lesson.time_s > 0) {
      file.time_s = lesson.time_s;
      file.timed_on = text_fingerprint(toml_of(learner.cluster));
    }
    write_file(file_of(learner), json_of(file).dump() + "\n");
  } catch (const std::exception& error) {
    if (!noted_) note_(fmt::format("what is learned is not kept: {}", error.what()));
    noted_ = true;
  }
}

}  // namespace tutti
