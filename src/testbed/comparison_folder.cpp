#include "testbed/comparison_folder.h"

#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <set>
#include <sstream>

#include "core/error.h"
#include "core/shallow_json.h"
#include "jobs/record_schema.h"
#include "jobs/run_folder.h"
#include "jobs/run_status.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kSchema = 1;

std::string new_path(const std::string& name) {
  const std::time_t now = std::time(nullptr);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", std::localtime(&now));
  std::string path = fmt::format("compare/{}-{}", name, stamp);
  std::error_code failed;
  for (int i = 2; fs::exists(path, failed); ++i)
    path = fmt::format("compare/{}-{}-{}", name, stamp, i);
  return path;
}

// The settings of a resolved job, each with its table: "cluster.workers = 8".
std::set<std::string> settings_in(const std::string& toml) {
  std::set<std::string> result;
  std::istringstream lines(toml);
  std::string table;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("["))
      table =
          line.substr(line.find_first_not_of('['), line.find(']') - line.find_first_not_of('['));
    else if (!line.empty())
      result.insert(table.empty() ? line : fmt::format("{}.{}", table, line));
  }
  return result;
}

// The first few settings by which two jobs differ.
std::string difference(const std::string& before, const std::string& now) {
  const std::set<std::string> a = settings_in(before), b = settings_in(now);
  std::string text;
  int count = 0;
  const auto list = [&](const std::set<std::string>& in, const std::set<std::string>& without,
                        const char* what) {
    for (const std::string& setting : in)
      if (!without.contains(setting) && ++count <= 6)
        text += fmt::format("\n  {}: {}", what, setting);
  };
  list(a, b, "there");
  list(b, a, "now  ");
  if (count > 6) text += fmt::format("\n  and {} more", count - 6);
  return text;
}

// A job as this version writes it: settings that the text is older than have their defaults.
std::string written_now(const std::string& job) {
  try {
    return resolved_toml(parse_job(job, "a job"));
  } catch (const Error&) {
    return job;
  }
}

bool same_job(const std::string& a, const std::string& b) {
  return a == b || written_now(a) == written_now(b);
}

// What a write that was killed leaves behind.
bool is_leftover(const fs::directory_entry& entry) {
  return entry.path().filename().string().starts_with("compar") &&
         entry.path().extension() == ".tmp";
}

}  // namespace

ComparisonFolder::ComparisonFolder(const std::string& path, const std::string& name,
                                   const ComparisonSettings& settings)
    : path_(path.empty() ? new_path(name) : path) {
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
  try {
    open(settings);
  } catch (const fs::filesystem_error& error) {
    throw ConfigError("--out",
                      fmt::format("{}: the folder of the comparison cannot be used: {}; name "
                                  "one with --out where you may write",
                                  path_, error.code().message()));
  }
}

void ComparisonFolder::open(const ComparisonSettings& settings) {
  const std::string plan = path_ + "/comparison.json";
  const bool there = fs::exists(plan);
  fs::create_directories(path_);
  lock_ = FolderLock(path_);
  for (const fs::directory_entry& entry : fs::directory_iterator(path_)) {
    if (is_leftover(entry))
      fs::remove(entry.path());
    else if (!there)
      throw ConfigError("--out", fmt::format("{}: is not the folder of a comparison and not empty; "
                                             "choose another one",
                                             path_));
  }
  if (!there) {
    json content = {{"schema", kSchema},
                    {"kind", "comparison plan"},
                    {"share_curves", settings.share_curves},
                    {"job", settings.job},
                    {"data", settings.data}};
    if (!settings.tuning.empty()) content["tuning"] = settings.tuning;
    write_file(plan, content.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
  }
  // After the plan: a folder with anything in it but a plan would not be known again.
  fs::create_directories(path_ + "/runs");
  fs::create_directories(path_ + "/jobs");
  if (!there) return;
  const json before = parse_shallow_json(read_file(plan));
  if (!before.is_object() || !before.contains("job") || !before["job"].is_string())
    throw DataError(
        fmt::format("{}: is damaged; choose another --out, or remove the folder", plan));
  require_schema(before, {1, kSchema}, plan, "choose another --out");
  if (!same_job(before["job"], settings.job))
    throw ConfigError("--out",
                      fmt::format("{}: holds another comparison; choose another folder, or "
                                  "make the job the same again:{}",
                                  path_, difference(before["job"], settings.job)));
  if (const json tuning = before.value("tuning", json("")); tuning != settings.tuning)
    throw ConfigError(
        "--out", fmt::format("{}: holds a comparison {}; choose another folder", path_,
                             tuning == json("") ? "without --tune"
                                                : fmt::format("with --tune {}", tuning.dump())));
  const json data = before.value("data", json());  // missing in older folders
  if (data.is_string() && data != settings.data)
    throw ConfigError("--out", fmt::format("{}: holds runs on other data: its files have changed "
                                           "since; choose another folder",
                                           path_));
  if (before.value("share_curves", json(true)) != settings.share_curves)
    throw ConfigError("--out", fmt::format("{}: holds a comparison {} --no-sharing; choose another "
                                           "folder",
                                           path_, settings.share_curves ? "with" : "without"));
}

std::optional<RunFiles> ComparisonFolder::finished(const std::string& name,
                                                   const std::string& wanted,
                                                   std::string& complaint) const {
  const std::string folder = run(name);
  if (!fs::exists(folder)) return std::nullopt;
  if (!fs::exists(folder + "/run.json")) {  // it was under way when everything ended
    remove(name);
    return std::nullopt;
  }
  try {
    RunFiles files = read_run(folder);
    const std::string status = files.record.status;
    const bool ended =
        learned_to_the_end(status) ||
        (says(status, RunStatus::kPeerLost) && says(files.record.obtained, Obtained::kSimulated));
    if (!same_job(read_file(folder + "/job.toml"), wanted))
      complaint = fmt::format("{}: was made with other settings", folder);
    else if (!files.missing.empty())
      complaint = files.missing;
    else if (ended)
      return files;
  } catch (const std::exception& error) {
    complaint = error.what();
  }
  return std::nullopt;
}

void ComparisonFolder::remove(const std::string& name) const {
  std::error_code failed;
  fs::remove_all(run(name), failed);
  if (failed)
    throw DataError(fmt::format("{}: cannot be removed: {}", run(name), failed.message()));
}

}  // namespace tutti
