// `tutti list`: the catalogs, as tables or JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "collectives/topology.h"
#include "core/error.h"
#include "jobs/job.h"
#include "jobs/plan_json.h"
#include "jobs/tasks.h"
#include "testbed/record_reference.h"

namespace tutti {
namespace {

using nlohmann::json;
using ListRows = std::vector<std::pair<std::string, std::string>>;

template <class Catalog>
ListRows rows_of(const Catalog& catalog) {
  ListRows rows;
  for (const auto& entry : catalog) rows.emplace_back(entry.name, entry.summary);
  return rows;
}

void print(const ListRows& rows, bool as_json) {
  if (as_json) {
    json list = json::array();
    for (const auto& [name, summary] : rows) list.push_back({{"name", name}, {"summary", summary}});
    std::cout << list.dump() << "\n";
    return;
  }
  for (const auto& [name, summary] : rows) fmt::print("{:<18} {}\n", name, summary);
}

void print_settings(bool as_json) {
  if (!as_json) {
    std::cout << job_reference();
    return;
  }
  json list = json::array();
  for (const Setting& setting : job_settings())
    list.push_back({{"table", setting.table},
                    {"key", setting.key},
                    {"values", setting.values},
                    {"default", setting.preset},
                    {"meaning", setting.meaning}});
  std::cout << list.dump() << "\n";
}

void print_records(bool as_json) {
  if (!as_json) {
    std::cout << record_reference();
    return;
  }
  json list = json::array();
  for (const DescribedFile& file : described_files())
    for (const DescribedKey& key : file.keys)
      list.push_back({{"file", file.name},
                      {"key", key.key},
                      {"type", key.type},
                      {"always", key.presence != Presence::kWhenKnown},
                      {"meaning", key.meaning}});
  std::cout << list.dump() << "\n";
}

// What a strategy can be, by its settings: what its variants are, its defaults first.
std::vector<std::string> places_of(const StrategyEntry& entry,
                                   std::string_view (*word)(const Taxonomy&)) {
  std::vector<std::string> places = {std::string(word(entry.make()->taxonomy()))};
  for (const Variant& variant : entry.variants()) {
    std::vector<std::string> settings = {"strategy.kind=" + std::string(entry.name)};
    for (const std::string& setting : variant.settings) settings.push_back("strategy." + setting);
    const std::string place(word(load_job("", settings).strategy->taxonomy()));
    if (std::find(places.begin(), places.end(), place) == places.end()) places.push_back(place);
  }
  return places;
}

void print_strategies(bool as_json) {
  json list = json::array();
  for (const StrategyEntry& entry : strategy_catalog()) {
    std::map<std::string, std::string> places;
    for (const TaxonomyPart& part : taxonomy_parts())
      places[part.name] = fmt::format("{}", fmt::join(places_of(entry, part.word), " or "));
    if (as_json) {
      json object = places;
      object["name"] = entry.name;
      object["summary"] = entry.summary;
      list.push_back(std::move(object));
      continue;
    }
    std::cout << fmt::format(
        "{:<18} {}\n{:<18} {}; parallelism: {}; optimisation: {}; {}; pattern: {}\n", entry.name,
        entry.summary, "", places["structure"], places["parallelism"], places["optimisation"],
        places["timing"], places["pattern"]);
    std::cout << fmt::format(
        "{:<18} data: {}; stragglers: {}\n{:<18} a node sends: {}; computes: {}\n", "",
        places["data"], places["stragglers"], "", places["communication"], places["computation"]);
  }
  if (as_json) std::cout << list.dump() << "\n";
}

// `here`: whether all files of its data are on this machine.
void print_tasks(bool as_json) {
  json list = json::array();
  if (!as_json)
    fmt::print("{:<19} {:<25} {:<14} {:<12} {:<17} data here\n", "name", "learning task", "data",
               "model", "target");
  for (const ReferenceTask& task : reference_tasks()) {
    const std::string recipe = recipe_of(task);
    const Job job = load_job(recipe, {});
    const std::vector<std::string> missing = missing_files(job);
    const bool regression = predicts_numbers(job.task.data);
    const std::string metric = regression ? "mse" : "accuracy";
    if (as_json) {
      list.push_back({{"name", task.name},
                      {"learning_task", task.learning},
                      {"summary", task.summary},
                      {"data", job.task.data.kind()},
                      {"model", job.task.model.kind()},
                      {"metric", metric},
                      {"higher_is_better", !regression},
                      {"target", job.task.target},
                      {"recipe", recipe},
                      {"data_here", missing.empty()},
                      {"missing", missing},
                      {"remedy", task.remedy}});
      continue;
    }
    const std::string target =
        fmt::format("{} {} {}", metric, regression ? "<=" : ">=", job.task.target);
    fmt::print("{:<19} {:<25} {:<14} {:<12} {:<17} {}\n", task.name, task.learning,
               job.task.data.kind(), job.task.model.kind(), target,
               missing.empty() ? "yes" : fmt::format("no: {}", task.remedy));
  }
  if (as_json) std::cout << list.dump() << "\n";
}

enum class Listed {
  kStrategies,
  kTopologies,
  kOptimizers,
  kModels,
  kData,
  kFabrics,
  kTasks,
  kSettings,
  kRecords
};
constexpr auto words(Listed) {
  return WordList<9>{"strategies", "topologies", "optimizers", "models", "data",
                     "fabrics",    "tasks",      "settings",   "records"};
}

[[noreturn]] void refuse_kind(const std::string& kind) {
  constexpr auto kKnown = words(Listed{});
  const std::string suggestion = nearest(kind, {kKnown.begin(), kKnown.end()});
  throw ConfigError("KIND",
                    fmt::format("there is no list of '{}'{}; there are {} and {}", kind,
                                suggestion.empty() ? "" : ", did you mean '" + suggestion + "'?",
                                fmt::join(kKnown.begin(), kKnown.end() - 1, ", "), kKnown.back()));
}

}  // namespace

int run_list(const std::string& kind, const CommonOptions& options) {
  constexpr auto kKnown = words(Listed{});
  const auto found = std::find(kKnown.begin(), kKnown.end(), kind);
  if (found == kKnown.end()) refuse_kind(kind);
  switch (static_cast<Listed>(found - kKnown.begin())) {
    case Listed::kStrategies:
      print_strategies(options.json);
      break;
    case Listed::kTopologies:
      print(rows_of(topology_catalog()), options.json);
      break;
    case Listed::kOptimizers:
      print(rows_of(optimizer_catalog()), options.json);
      break;
    case Listed::kModels:
      print(rows_of(model_catalog()), options.json);
      break;
    case Listed::kData:
      print(rows_of(data_catalog()), options.json);
      break;
    case Listed::kFabrics:
      print({{"process", "processes of this machine, by UCX and shared memory; time is measured"},
             {"virtual", "a simulated cluster in this process; time is virtual, results replay"}},
            options.json);
      break;
    case Listed::kTasks:
      print_tasks(options.json);
      break;
    case Listed::kSettings:
      print_settings(options.json);
      break;
    case Listed::kRecords:
      print_records(options.json);
      break;
  }
  return 0;
}

}  // namespace tutti
