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
std::vector<std::string> places_of(const StrategyEntry& entry, std::string_view Taxonomy::*word) {
  std::vector<std::string> places = {std::string(entry.make()->taxonomy().*word)};
  for (const Variant& variant : entry.variants()) {
    std::vector<std::string> settings = {"strategy.kind=" + std::string(entry.name)};
    for (const std::string& setting : variant.settings) settings.push_back("strategy." + setting);
    const std::string place(load_job("", settings).strategy->taxonomy().*word);
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

}  // namespace

int run_list(const std::string& kind, const CommonOptions& options) {
  if (kind == "strategies")
    print_strategies(options.json);
  else if (kind == "topologies")
    print(rows_of(topology_catalog()), options.json);
  else if (kind == "optimizers")
    print(rows_of(optimizer_catalog()), options.json);
  else if (kind == "models")
    print(rows_of(model_catalog()), options.json);
  else if (kind == "data")
    print(rows_of(data_catalog()), options.json);
  else if (kind == "fabrics")
    print({{"process", "processes of this machine, by UCX and shared memory; time is measured"},
           {"virtual", "a simulated cluster in this process; time is virtual, results replay"}},
          options.json);
  else if (kind == "tasks")
    print_tasks(options.json);
  else if (kind == "settings")
    print_settings(options.json);
  else if (kind == "records")
    print_records(options.json);
  else {
    const std::vector<std::string_view> known = {"strategies", "topologies", "optimizers",
                                                 "models",     "data",       "fabrics",
                                                 "tasks",      "settings",   "records"};
    const std::string suggestion = nearest(kind, known);
    throw ConfigError("KIND",
                      fmt::format("there is no list of '{}'{}; there are {}", kind,
                                  suggestion.empty() ? "" : ", did you mean '" + suggestion + "'?",
                                  "strategies, topologies, optimizers, models, data, "
                                  "fabrics, tasks, settings and records"));
  }
  return 0;
}

}  // namespace tutti
