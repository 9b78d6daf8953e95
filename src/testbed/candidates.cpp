#include "testbed/candidates.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "jobs/recipes.h"

namespace tutti {

std::vector<Candidate> make_candidates(const JobSource& source, const ClusterConfig& cluster,
                                       const std::vector<std::string>& only) {
  std::vector<Candidate> candidates;
  std::vector<std::string> names;
  for (const StrategyEntry& entry : strategy_catalog())
    for (const Variant& variant : entry.variants()) {
      names.push_back(variant.name);
      if (!only.empty() && std::find(only.begin(), only.end(), variant.name) == only.end())
        continue;
      std::vector<std::string> sets = source.sets;
      sets.push_back(fmt::format("strategy={{ kind = \"{}\" }}", entry.name));
      for (const std::string& setting : variant.settings) sets.push_back("strategy." + setting);
      Job job = load_job(source.path, sets);
      job.name = variant.name;
      job.cluster = cluster;
      job.strategy->fit(job.cluster);
      candidates.push_back({variant.name, std::move(job)});
    }
  for (const std::string& wanted : only) {
    if (std::find(names.begin(), names.end(), wanted) != names.end()) continue;
    const std::vector<std::string_view> known(names.begin(), names.end());
    const std::string guess = nearest(wanted, known);
    throw ConfigError("--strategies",
                      fmt::format("--strategies: there is no '{}'{}; there are {}", wanted,
                                  guess.empty() ? "" : ", did you mean '" + guess + "'?",
                                  fmt::join(names, ", ")));
  }
  return candidates;
}

ClusterConfig load_cluster(const std::string& name_or_file) {
  Job job = load_job(find_recipe("clusters", name_or_file), {});
  if (job.cluster.fabric != "virtual")
    throw ConfigError("cluster.fabric",
                      fmt::format("{}: cluster.fabric = \"{}\", but advice is about a virtual "
                                  "cluster; set it to \"virtual\" and describe the nodes",
                                  name_or_file, job.cluster.fabric));
  validate_cluster(job.cluster);
  return job.cluster;
}

}  // namespace tutti
