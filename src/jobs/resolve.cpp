#include "jobs/resolve.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/printable.h"
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

// Writes what the planner decided into the settings. Copies of the job may share the strategy, so
// it is replaced and not changed.
Job settled(const Job& job, const Plan& plan) {
  Job result = job;
  result.cluster = plan.cluster;
  if (plan.decided.empty()) return result;
  Job only;
  only.strategy_kind = job.strategy_kind;
  only.strategy = job.strategy;
  std::vector<std::string> settings;
  for (const std::string& setting : plan.decided) settings.push_back("strategy." + setting);
  result.strategy = with_settings(only, settings).strategy;
  return result;
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
  return {std::move(result), std::move(data), *plan.architecture, std::move(plan)};
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

}  // namespace tutti
