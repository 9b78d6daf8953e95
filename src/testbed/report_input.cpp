#include "testbed/report_input.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "core/shallow_json.h"
#include "jobs/run_folder.h"
#include "jobs/task_identity.h"
#include "testbed/comparison_check.h"

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

json read_comparison(const std::string& file) {
  json comparison = parse_shallow_json(read_file(file));
  check_comparison(comparison, file);
  return comparison;
}

// Figures of unlike tasks side by side would compare nothing.
void expect_same_task(const json& first, const json& other, const std::string& path) {
  const json::json_pointer identity("/task/identity");
  if (const std::string text =
          task_difference(other.value(identity, json()), first.value(identity, json()));
      !text.empty())
    throw ConfigError("PATH", fmt::format("{}: is of another task than the first one: {}; only "
                                          "results of one task can stand side by side, make a "
                                          "report of each",
                                          path, text));
  for (const char* key : {"data", "model", "global_batch", "metric", "target"}) {
    const json::json_pointer at(fmt::format("/task/{}", key));
    const json ours = first.value(at, json()), theirs = other.value(at, json());
    if (ours != theirs)
      throw ConfigError("PATH", fmt::format("{}: its task has {} = {}, the first one's {}; only "
                                            "results of one task can stand side by side",
                                            path, key, theirs.dump(), ours.dump()));
  }
}

// Names stay unique: what was there already gets the name of its comparison added.
void add_strategies(json& whole, const json& other) {
  std::set<std::string> names;
  for (const json& strategy : whole["strategies"]) names.insert(strategy["name"]);
  for (json strategy : other["strategies"]) {
    const std::string name = strategy["name"];
    std::string unique = name;
    if (names.contains(unique))
      unique = fmt::format("{} ({})", name, other.value("name", std::string("other")));
    for (int i = 2; names.contains(unique); ++i) unique = fmt::format("{} ({})", name, i);
    names.insert(unique);
    strategy["name"] = unique;
    whole["strategies"].push_back(std::move(strategy));
  }
}

}  // namespace

json read_comparisons(const std::vector<std::string>& paths, const SummariseRuns& summarise) {
  json whole;
  std::vector<std::string> folders;
  json sources = json::array();
  const auto add = [&](json&& comparison, const std::string& path) {
    sources.push_back({{"path", path},
                       {"machine", comparison.value("machine", json())},
                       {"versions", comparison.value("versions", json())}});
    if (whole.is_null()) {
      whole = std::move(comparison);
      return;
    }
    expect_same_task(whole, comparison, path);
    add_strategies(whole, comparison);
  };
  for (const std::string& path : paths) {
    const std::string file = comparison_file(path);
    if (file.empty())
      folders.push_back(path);
    else
      add(read_comparison(file), file);
  }
  if (!folders.empty()) {
    json runs = summarise(folders);
    check_comparison(runs, folders[0]);
    add(std::move(runs), folders[0]);
  }
  if (sources.size() > 1) whole["sources"] = std::move(sources);
  return whole;
}

}  // namespace tutti
