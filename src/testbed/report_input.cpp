#include "testbed/report_input.h"

#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "core/described_json.h"
#include "core/error.h"
#include "core/shallow_json.h"
#include "jobs/run_folder.h"
#include "jobs/task_identity.h"

namespace tutti {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// The comparison's file for a path that is one, or a folder with one; empty for the folder of a
// run.
std::string comparison_file(const std::string& path) {
  std::error_code failed;
  if (!fs::exists(path, failed))
    throw DataError(
        fmt::format("{}: does not exist; give a compare.json, its folder, or the "
                    "folders of runs",
                    path));
  if (!fs::is_directory(path, failed)) return path;
  const std::string inside = (fs::path(path) / "compare.json").string();
  if (fs::exists(inside, failed)) return inside;
  if (fs::exists(fs::path(path) / "run.json", failed)) return "";
  throw DataError(
      fmt::format("{}: holds neither compare.json nor run.json; was the run or the "
                  "comparison ended before it wrote its record?",
                  path));
}

Comparison read_comparison(const std::string& file) {
  return comparison_of(parse_shallow_json(read_file(file)), file);
}

// Figures of unlike tasks side by side would compare nothing.
void expect_same_task(const Comparison& first, const Comparison& other, const std::string& path) {
  if (other.task.identity && first.task.identity)
    if (const std::string text = task_difference(*other.task.identity, *first.task.identity);
        !text.empty())
      throw ConfigError("PATH", fmt::format("{}: is of another task than the first one: {}; only "
                                            "results of one task can stand side by side, make a "
                                            "report of each",
                                            path, text));
  const json ours = json_of(first.task), theirs = json_of(other.task);
  for (const char* key : {"data", "model", "global_batch", "metric", "target"})
    if (ours[key] != theirs[key])
      throw ConfigError("PATH", fmt::format("{}: its task has {} = {}, the first one's {}; only "
                                            "results of one task can stand side by side",
                                            path, key, theirs[key].dump(), ours[key].dump()));
}

// What is said of the cluster is true of both, or not said.
void merge_cluster(ComparedCluster& whole, const ComparedCluster& other) {
  if (whole.machines != other.machines) whole.machines.reset();
  if (whole.workers != other.workers || whole.network != other.network ||
      whole.fabric != other.fabric) {
    whole.workers.reset();
    whole.network.clear();
  }
  if (whole.description != other.description) whole.description += "; " + other.description;
}

// Names stay unique: what was there already gets the name of its comparison added.
void add_strategies(Comparison& whole, Comparison&& other) {
  std::set<std::string> names;
  for (const ComparedStrategy& strategy : whole.strategies) names.insert(strategy.name);
  for (ComparedStrategy& strategy : other.strategies) {
    std::string unique = strategy.name;
    if (names.contains(unique))
      unique = fmt::format("{} ({})", strategy.name, other.name.empty() ? "other" : other.name);
    for (int i = 2; names.contains(unique); ++i) unique = fmt::format("{} ({})", strategy.name, i);
    names.insert(unique);
    strategy.name = unique;
    whole.strategies.push_back(std::move(strategy));
  }
}

}  // namespace

Comparison read_comparisons(const std::vector<std::string>& paths, const SummariseRuns& summarise) {
  std::optional<Comparison> whole;
  std::vector<std::string> folders;
  std::vector<ComparisonSource> sources;
  const auto add = [&](Comparison&& comparison, const std::string& path) {
    sources.push_back({path, comparison.machine, comparison.versions});
    if (!whole) {
      whole = std::move(comparison);
      return;
    }
    expect_same_task(*whole, comparison, path);
    merge_cluster(whole->cluster, comparison.cluster);
    add_strategies(*whole, std::move(comparison));
  };
  for (const std::string& path : paths) {
    const std::string file = comparison_file(path);
    if (file.empty())
      folders.push_back(path);
    else
      add(read_comparison(file), file);
  }
  if (!folders.empty()) add(summarise(folders), folders[0]);
  if (!whole) throw DataError("no comparison and no runs were given");
  if (sources.size() > 1) whole->sources = std::move(sources);
  return std::move(*whole);
}

}  // namespace tutti
