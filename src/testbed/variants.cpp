#include "testbed/variants.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "core/error.h"
#include "core/recorded_word.h"
#include "fabric/capabilities.h"

namespace tutti {
namespace {

Job variant_of(const Job& job, std::string_view kind, const Variant& variant) {
  // Settings of the same kind are kept: a comparison of topologies keeps the job's bucket size.
  std::vector<std::string> settings = {fmt::format("strategy.kind={}", kind)};
  for (const std::string& setting : variant.settings) settings.push_back("strategy." + setting);
  Job result = with_settings(job, settings);
  result.name = variant.name;
  result.places.clear();  // nobody wrote these settings down
  return result;
}

std::string settings_of(Job job) {
  job.name.clear();
  job.compare.clear();
  return resolved_toml(job);
}

// What a variant is put on: the [[compare]] entry of its name, which has the settings that suit it,
// or the job.
const Job& base_of(const Job& job, const std::string& variant) {
  for (const Job& entry : job.compare)
    if (entry.name == variant) return entry;
  return job;
}

// An entry that is named like a variant says how that one runs, not what it is.
void require_no_strategy(const Job& job, const Job& entry) {
  if (strategy_settings(entry) == strategy_settings(job)) return;
  throw ConfigError("compare.name",
                    fmt::format("a [[compare]] entry is named \"{}\" like a strategy of the "
                                "catalog, for which it may set anything but [strategy]; choose "
                                "another name",
                                entry.name));
}

// Everyone that `all` stands for, the [[compare]] entries last.
std::vector<Job> everyone(const Job& job) {
  std::vector<Job> all;
  const std::string own = settings_of(job);
  bool own_is_there = false;
  for (const StrategyEntry& entry : strategy_catalog())
    for (const Variant& variant : entry.variants()) {
      all.push_back(variant_of(base_of(job, variant.name), entry.name, variant));
      own_is_there = own_is_there || settings_of(variant_of(job, entry.name, variant)) == own;
    }
  if (!own_is_there) {
    all.push_back(with_settings(job, {}));
    all.back().name = "job";
  }
  for (const Job& entry : job.compare)
    if (is_variant(entry.name))
      require_no_strategy(job, entry);
    else
      all.push_back(with_settings(entry, {}));
  return all;
}

bool is_entry(const Job& job, const Job& candidate) {
  return !is_variant(candidate.name) &&
         std::any_of(job.compare.begin(), job.compare.end(),
                     [&](const Job& entry) { return entry.name == candidate.name; });
}

// Names that stand for more than one strategy.
enum class Several { kAll, kListed };
constexpr auto words(Several) { return WordList<2>{"all", "listed"}; }

std::vector<Job> select(const Job& job, const std::vector<std::string>& names) {
  const std::vector<Job> all = everyone(job);
  std::set<size_t> chosen;
  for (const std::string& name : names) {
    const size_t before = chosen.size();
    const bool everything = says(name, Several::kAll), listed = says(name, Several::kListed);
    bool known = everything || listed;
    for (size_t i = 0; i < all.size(); ++i) {
      const bool entry = is_entry(job, all[i]);
      const bool meant = everything || (listed && entry) || name == all[i].name ||
                         (!entry && name == all[i].strategy_kind);
      if (meant) chosen.insert(i);
      known = known || meant;
    }
    if (listed && chosen.size() == before && job.compare.empty())
      throw ConfigError("--strategies", "--strategies listed: the job has no [[compare]] entries");
    if (known) continue;
    std::vector<std::string_view> candidates = {"all", "listed"};
    std::string list;
    for (const Job& candidate : all) {
      candidates.push_back(candidate.name);
      list += (list.empty() ? "" : ", ") + candidate.name;
    }
    const std::string near = nearest(name, candidates);
    throw ConfigError("--strategies",
                      fmt::format("--strategies: there is no '{}'{}; there are all, {}", name,
                                  near.empty() ? "" : ", did you mean '" + near + "'?", list));
  }
  std::vector<Job> result;
  for (const size_t i : chosen) result.push_back(all[i]);
  return result;
}

// Resolves jobs one after the other, reading the data again only when it is other data.
class Examiner {
 public:
  Resolved examine(const Job& job) {
    Job data_only;
    data_only.task.data = job.task.data;
    const std::string key = resolved_toml(data_only);
    if (data_ && key == key_) return resolve(job, *data_);
    Resolved resolved = resolve(job);
    data_ = resolved.data;
    key_ = key;
    return resolved;
  }

 private:
  std::string key_;
  std::optional<Data> data_;
};

// A comparison shows what the same machines can do. A strategy that has nodes besides the workers
// and does not plan for them puts these on the workers' machines. A [[compare]] entry runs as it
// was written.
void plan_nodes(ComparedJob& candidate, bool as_written, Examiner& examiner) {
  const ClusterConfig& given = candidate.open.cluster;
  const int64_t machines = hosts_of(given, given.workers);
  Resolved resolved = examiner.examine(candidate.open);
  const ClusterConfig& cluster = resolved.job.cluster;
  const int64_t used = hosts_of(cluster, std::ssize(resolved.plan.nodes));
  if (!as_written && capabilities_of(cluster).declared_hosts && used > machines) {
    resolved.job.cluster.colocated = candidate.open.cluster.colocated = true;
    resolved = examiner.examine(Job(resolved.job));
  }
  candidate.job = std::move(resolved.job);
  candidate.plan = std::move(resolved.plan);
}

}  // namespace

std::vector<ComparedJob> compared_jobs(const Job& job, const std::vector<std::string>& names,
                                       Memory memory) {
  std::vector<ComparedJob> result;
  std::optional<ConfigError> first;
  Examiner examiner;
  for (Job& chosen : select(job, names)) {
    chosen.strategy->fit(chosen.cluster);
    ComparedJob candidate{.job = chosen, .open = chosen, .plan = {}, .refusal = ""};
    try {
      plan_nodes(candidate, is_entry(job, chosen), examiner);
      if (memory == Memory::kMustSuffice) require_memory(candidate.job, candidate.plan);
    } catch (const ConfigError& error) {
      if (!first) first = error;
      candidate.refusal = error.what();
    }
    result.push_back(std::move(candidate));
  }
  if (std::all_of(result.begin(), result.end(), [](const auto& c) { return !c.refusal.empty(); }))
    throw ConfigError(first ? first->key() : "--strategies",
                      fmt::format("nothing is left to compare; the first reason is: {}",
                                  first ? first->what() : "none was chosen"));
  return result;
}

std::vector<ComparedJob> planned_with(const std::vector<ComparedJob>& compared,
                                      const std::vector<std::string>& settings) {
  TUTTI_CHECK(settings.size() == compared.size());
  std::vector<ComparedJob> result;
  Examiner examiner;
  for (size_t i = 0; i < compared.size(); ++i) {
    result.push_back(compared[i]);
    ComparedJob& candidate = result.back();
    if (settings[i].empty() || !candidate.refusal.empty()) continue;
    try {
      const std::string name = candidate.open.name;
      candidate.open = with_settings(candidate.open, {settings[i]});
      candidate.open.name = name;
      Resolved resolved = examiner.examine(candidate.open);
      candidate.job = std::move(resolved.job);
      candidate.plan = std::move(resolved.plan);
    } catch (const ConfigError& error) {
      candidate.refusal = error.what();
    }
  }
  return result;
}

bool is_variant(const std::string& name) {
  for (const StrategyEntry& entry : strategy_catalog())
    for (const Variant& variant : entry.variants())
      if (variant.name == name) return true;
  return false;
}

std::string variant_name(const Job& job) {
  const std::string own = settings_of(job);
  for (const StrategyEntry& entry : strategy_catalog()) {
    if (entry.name != job.strategy_kind) continue;
    for (const Variant& variant : entry.variants())
      if (settings_of(variant_of(job, entry.name, variant)) == own) return variant.name;
  }
  return job.strategy_kind;
}

}  // namespace tutti
