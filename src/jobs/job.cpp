#include "jobs/job.h"

#include <fmt/format.h>

namespace tutti {
std::string place_in(const std::map<std::string, std::string>& places, std::string key) {
  for (;;) {
    const auto found = places.find(key);
    if (found != places.end()) return found->second + ": ";
    if (key.empty()) return "";
    const size_t dot = key.rfind('.');
    key.resize(dot == std::string::npos ? 0 : dot);
  }
}

std::string placed(const std::map<std::string, std::string>& places, const std::string& key,
                   const std::string& name, const std::string& problem) {
  const bool named = problem.find(name) != std::string::npos;
  return fmt::format("{}{}{}", place_in(places, key), named ? "" : name + ": ", problem);
}

void visit(Visitor& v, Job& job) {
  v.field("name", job.name, "name of the run, used for its folder");
  v.table(
      "task", [&](Visitor& inner) { visit(inner, job.task); },
      "what to learn: the same for every architecture");
  v.table(
      "optimizer", [&](Visitor& inner) { visit(inner, job.optimizer); },
      "how a gradient changes the parameters");
  v.table(
      "strategy",
      [&](Visitor& inner) {
        std::vector<std::string_view> kinds;
        for (const StrategyEntry& entry : strategy_catalog()) kinds.push_back(entry.name);
        const std::string before = job.strategy_kind;
        inner.choice("kind", job.strategy_kind, kinds, "the architecture");
        if (!job.strategy || job.strategy_kind != before)
          job.strategy = make_strategy(job.strategy_kind);
        job.strategy->visit(inner);
      },
      "the architecture: the only part that changes");
  v.table(
      "cluster", [&](Visitor& inner) { visit(inner, job.cluster); }, "where it runs");
  v.table(
      "footprint", [&](Visitor& inner) { visit(inner, job.footprint); },
      "how energy becomes CO2e, and time becomes money");
}

}  // namespace tutti
