#include "testbed/question.h"

#include <fmt/format.h>

#include "core/chosen.h"
#include "data/data_config.h"
#include "models/model_config.h"

namespace tutti {
namespace {

// How sentences name a kind; a kind that this version does not know keeps its own name.
template <class Entry>
std::string title_of(const std::vector<Entry>& catalog, const std::string& kind) {
  const Entry* entry = find_entry(catalog, kind);
  return entry ? std::string(entry->title) : kind;
}

std::string what(const ComparedTask& task) {
  std::string text = task.model.empty() ? "this model" : title_of(model_catalog(), task.model);
  if (!task.file.empty()) return text + " on " + task.file;
  return task.data.empty() ? text : text + " on " + title_of(data_catalog(), task.data);
}

// Empty where clusters differ or were not recorded.
std::string where(const ComparedCluster& cluster) {
  if (!cluster.workers) return "";
  const bool simulated = !cluster.network.empty();
  std::string text = fmt::format(" on {} {}{}", *cluster.workers, simulated ? "node" : "process",
                                 *cluster.workers == 1 ? ""
                                 : simulated           ? "s"
                                                       : "es");
  return simulated ? text + " at " + cluster.network : text;
}

bool measured_quality(const Comparison& comparison) {
  for (const ComparedStrategy& row : comparison.strategies)
    if (row.quality.best && row.quality.best->mean) return true;
  return false;
}

}  // namespace

std::string question_of(const Comparison& comparison) {
  const std::string task = what(comparison.task), cluster = where(comparison.cluster);
  const bool race = comparison.task.target || !measured_quality(comparison);
  if (comparison.strategies.size() == 1)
    return fmt::format("How {} does {} train {}{}?", race ? "fast" : "well",
                       comparison.strategies.front().name, task, cluster);
  return fmt::format("Which architecture trains {} {}{}?", task, race ? "fastest" : "best",
                     cluster);
}

}  // namespace tutti
