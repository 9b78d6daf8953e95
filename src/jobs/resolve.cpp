#include "jobs/resolve.h"

#include <fmt/format.h>

#include <map>

#include "core/error.h"
#include "core/printable.h"
#include "data/csv_rows.h"
#include "data/standardise.h"
#include "models/sparse_model.h"
#include "sparse/row_optimizer.h"

namespace tutti {
namespace {

void validate_name(const Job& job) {
  if (job.name.empty() || job.name.find('/') != std::string::npos)
    throw ConfigError("name", fmt::format("name = \"{}\" becomes part of a folder's name: it must "
                                          "not be empty or contain a slash",
                                          printable(job.name)));
  if (!is_one_line(job.name))
    throw ConfigError("name", fmt::format("name = \"{}\" becomes part of a folder's name: it must "
                                          "be one line without control characters",
                                          printable(job.name)));
}

// Strategies that know only dense vectors move all rows at every step.
void validate_rows(const Job& job, const Plan& plan) {
  const Architecture& architecture = *plan.architecture;
  constexpr size_t kMostShared = size_t{1} << 32;  // by workers that read and write rows in place
  const size_t most = plan.rows != RowUse::kAll ? kMostShared : kMostFlat;
  if (architecture.row_width == 0 || plan.rows == RowUse::kSpread ||
      architecture.parameter_count <= most)
    return;
  if (plan.rows != RowUse::kAll)
    throw ConfigError(
        "strategy.kind",
        fmt::format("strategy.kind = \"{}\" keeps all {} parameters of task.model = "
                    "\"{}\" in one memory, more than {}; use parameter_server, whose "
                    "workers hold the rows of their batch",
                    job.strategy_kind, architecture.parameter_count, job.task.model.kind(), most));
  throw ConfigError(
      "strategy.kind",
      fmt::format("strategy.kind = \"{}\" moves all {} parameters of task.model = "
                  "\"{}\" at every step, more than {} make sense; use "
                  "parameter_server or hogwild, which move the rows that a batch "
                  "touches",
                  job.strategy_kind, architecture.parameter_count, job.task.model.kind(), most));
}

// Puts settings below [strategy] on top of a job's own. Copies of the job may share the strategy,
// so it is replaced and not changed.
void set_strategy(Job& job, const std::vector<std::string>& below_strategy) {
  if (below_strategy.empty()) return;
  Job only;
  only.strategy_kind = job.strategy_kind;
  only.strategy = job.strategy;
  std::vector<std::string> settings;
  for (const std::string& setting : below_strategy) settings.push_back("strategy." + setting);
  job.strategy = with_settings(only, settings).strategy;
}

// Writes what the planner decided into the settings.
Job settled(const Job& job, const Plan& plan) {
  Job result = job;
  result.cluster = plan.cluster;
  set_strategy(result, plan.decided);
  return result;
}

// How many nodes of each role there are, and how many stay.
struct RoleCount {
  int64_t before = 0, after = 0;
};

std::map<std::string, RoleCount> roles_after(const Plan& plan, const MembershipChange& change) {
  std::map<std::string, RoleCount> counts;
  for (Rank rank = 0; rank < std::ssize(plan.nodes); ++rank) {
    RoleCount& count = counts[plan.nodes[static_cast<size_t>(rank)].role];
    ++count.before;
    if (!change.leaves(rank)) ++count.after;
  }
  return counts;
}

// The settings that say how many nodes of a role there are.
std::vector<std::string> role_settings_after(const Job& job, const Plan& plan,
                                             const MembershipChange& change) {
  std::map<std::string, RoleCount> counts = roles_after(plan, change);
  std::vector<std::string> settings;
  for (const auto& [role, setting] : plan.role_settings) {
    const RoleCount& count = counts[role];
    if (count.after == 0)
      throw ConfigError("strategy." + setting,
                        fmt::format("strategy.{} = {}, but no {} is left; at least one must stay",
                                    setting, count.before, role));
    settings.push_back(fmt::format("{}={}", setting, count.after));
    counts.erase(role);
  }
  for (Rank rank = static_cast<Rank>(plan.workers); rank < std::ssize(plan.nodes); ++rank) {
    const std::string& role = plan.nodes[static_cast<size_t>(rank)].role;
    if (const auto needed = counts.find(role); needed != counts.end() && change.leaves(rank))
      throw ConfigError(
          "strategy.kind",
          fmt::format("strategy.kind = \"{}\" cannot do without its {}, rank {}; it must stay",
                      job.strategy_kind, role, rank));
  }
  return settings;
}

Job job_after(const Resolved& former, const MembershipChange& change) {
  const Plan& plan = former.plan;
  Job job = former.open;
  set_strategy(job, role_settings_after(job, plan, change));
  job.cluster = changed_cluster(plan.cluster, change, std::ssize(plan.nodes));
  return job;
}

Data data_for(const Job& job, Data data) {
  data.dataset = dataset_for(job.task.model, std::move(data.dataset));
  return data;
}

Resolved planned(const Job& job, Data data) {
  validate_name(job);
  data = data_for(job, std::move(data));
  const Architecture model = make_architecture(job.task.model, *data.dataset);
  Plan plan = job.strategy->plan({job.task, job.cluster, job.optimizer, model, sizes_of(data)});
  if (is_sparse(job.task.model) && plan.rows != RowUse::kAll) RowOptimizer{job.optimizer};
  validate_rows(job, plan);
  Job result = settled(job, plan);
  return {std::move(result), std::move(data), *plan.architecture, std::move(plan), job};
}

ConfigError with_place(const Job& job, const ConfigError& error) {
  return {error.key(), placed(job.places, error.key(), error.key(), error.what())};
}

}  // namespace

Resolved resolve(const Job& job) {
  Data data;
  try {
    data = load_data(job.task.data, job.task.seed, job.base_dir);
  } catch (const ConfigError& error) {
    throw with_place(job, error);
  } catch (const DataError& error) {
    throw DataError(
        fmt::format("{}task.data: {}", place_in(job.places, "task.data.path"), error.what()));
  }
  return resolve(job, data);
}

Resolved resolve(const Job& job, const Data& data) {
  try {
    return planned(job, data);
  } catch (const ConfigError& error) {
    throw with_place(job, error);
  }
}

Resolved resolve(const Resolved& former, const MembershipChange& change) {
  try {
    Resolved next = planned(job_after(former, change), former.data);
    next.plan.epoch = former.plan.epoch + 1;
    return next;
  } catch (const ConfigError& error) {
    const std::string problem = fmt::format("{}: {}", in_words(change), error.what());
    throw with_place(former.job, {error.key(), problem});
  }
}

Architecture trained_architecture(const Job& job, const DataDescription& data) {
  const Architecture model = make_architecture(job.task.model, data.sample_shape, data.classes);
  DataSizes sizes;
  sizes.sample_shape = data.sample_shape;
  sizes.classes = data.classes;
  sizes.answers_per_sample = data.answers_per_sample;
  return *job.strategy->plan({job.task, job.cluster, job.optimizer, model, sizes}).architecture;
}

std::string features_text(const Data& data) {
  if (!data.spread) return "";
  std::string text = spread_text(*data.spread);
  if (differ_in_scale(*data.spread))
    text += fmt::format(
        "; their scales differ by a factor of {:.2g}, with which training seldom gets anywhere: "
        "set task.data.standardise = true, or scale them in the file",
        data.spread->ratio);
  return text;
}

std::string classes_text(const Data& data) {
  constexpr int64_t kFew = 20;
  const int64_t classes = data.dataset->classes();
  if (!data.spread || classes <= kFew) return "";
  const std::vector<std::string> names = data.dataset->class_names();
  if (!std::all_of(names.begin(), names.end(),
                   [](const std::string& name) { return number_in(name).has_value(); }))
    return "";
  return fmt::format(
      "the label has {} different numbers, from {} to {}, and each is taken for a class; to "
      "predict "
      "the number itself, set task.data.regression = true",
      classes, names.front(), names.back());
}

std::string remarks_on(const Data& data) {
  std::string lines;
  if (const std::string text = features_text(data); !text.empty())
    lines += fmt::format("features: {}\n", text);
  if (const std::string text = classes_text(data); !text.empty())
    lines += fmt::format("classes: {}\n", text);
  return printable(lines);
}

}  // namespace tutti
