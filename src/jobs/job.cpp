#include "jobs/job.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/printable.h"
#include "core/units.h"
#include "data/standardise.h"
#include "jobs/predict_cost.h"
#include "models/sparse_model.h"
#include "sparse/row_optimizer.h"

namespace tutti {
namespace {

// Where `key`, or else the table around it, was given.
std::string place_in(const std::map<std::string, std::string>& places, std::string key) {
  for (;;) {
    const auto found = places.find(key);
    if (found != places.end()) return found->second + ": ";
    if (key.empty()) return "";
    const size_t dot = key.rfind('.');
    key.resize(dot == std::string::npos ? 0 : dot);
  }
}

std::string place_of(const Job& job, const std::string& key) { return place_in(job.places, key); }

}  // namespace

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

void validate(const Job& job, const Data& data) {
  if (job.name.empty() || job.name.find('/') != std::string::npos)
    throw ConfigError("name", fmt::format("name = \"{}\" becomes part of a folder's name: it must "
                                          "not be empty or contain a slash",
                                          printable(job.name)));
  if (!is_one_line(job.name))
    throw ConfigError("name", fmt::format("name = \"{}\" becomes part of a folder's name: it must "
                                          "be one line without control characters",
                                          printable(job.name)));
  validate_cluster(job.cluster, static_cast<int64_t>(job.strategy->roles(job.cluster).size()));
  const auto samples = static_cast<int64_t>(data.splits.train.size());
  if (job.cluster.workers > samples)
    throw ConfigError("cluster.workers",
                      fmt::format("cluster.workers = {} is more than the {} training samples",
                                  job.cluster.workers, samples));
  const int64_t parts = job.strategy->least_parts(job.cluster);
  if (job.task.global_batch < parts)
    throw ConfigError("task.global_batch",
                      fmt::format("task.global_batch = {} leaves some of cluster.workers = {} "
                                  "without a sample, as it is cut into {} parts; raise the one or "
                                  "lower the other",
                                  job.task.global_batch, job.cluster.workers, parts));
  if (job.task.global_batch > samples)
    throw ConfigError("task.global_batch",
                      fmt::format("task.global_batch = {} is more than the {} training samples",
                                  job.task.global_batch, samples));
  if (data.splits.validation.empty() && job.task.target > 0)
    throw ConfigError("task.target",
                      "task.target is measured on validation samples, but there are none; raise "
                      "task.data.validation");
  if (data.dataset->classes() > 0 && job.task.target > 1)
    throw ConfigError("task.target",
                      fmt::format("task.target = {} is more than 1, but accuracy is a share from 0 "
                                  "to 1{}",
                                  job.task.target,
                                  job.task.target <= 100
                                      ? fmt::format("; did you mean {:.6g}?", job.task.target / 100)
                                      : ""));
  if (job.task.deterministic && job.task.partition != "global")
    throw ConfigError("task.partition",
                      fmt::format("task.deterministic = true needs task.partition = \"global\": "
                                  "with \"{}\" the samples of a batch depend on the workers",
                                  job.task.partition));
  if (job.task.deterministic && most_threads(job.cluster) != 1)
    throw ConfigError(
        job.cluster.thread_counts.empty() ? "cluster.threads" : "cluster.thread_counts",
        "task.deterministic = true needs workers of one thread (cluster.threads): gradients depend "
        "on their number");
  if (job.task.lanes < parts && job.task.deterministic)
    throw ConfigError("task.lanes",
                      fmt::format("task.deterministic cuts a batch into task.lanes = {}, fewer "
                                  "than the {} parts for cluster.workers = {}; raise task.lanes",
                                  job.task.lanes, parts, job.cluster.workers));
  job.strategy->validate(job.task, job.cluster);
  job.strategy->validate_optimizer(job.optimizer);
  job.strategy->validate_data(data, job.cluster);
  if (is_sparse(job.task.model) && job.strategy->moves_rows()) RowOptimizer{job.optimizer};
}

namespace {

// Strategies that know only dense vectors move all rows at every step.
void validate_rows(const Job& job, const Architecture& architecture) {
  constexpr size_t kMostShared = size_t{1} << 32;  // by workers that read and write rows in place
  const size_t most = job.strategy->moves_rows() ? kMostShared : kMostFlat;
  if (architecture.row_width == 0 || job.strategy->spreads_rows() ||
      architecture.parameter_count <= most)
    return;
  if (job.strategy->moves_rows())
    throw ConfigError(
        "strategy.kind",
        fmt::format("strategy.kind = \"{}\" keeps all {} parameters of task.model = "
                    "\"{}\" in one memory, more than {}; use parameter_server, whose "
                    "workers hold the rows of their batch",
                    job.strategy_kind, architecture.parameter_count, job.task.model.kind, most));
  throw ConfigError(
      "strategy.kind",
      fmt::format("strategy.kind = \"{}\" moves all {} parameters of task.model = "
                  "\"{}\" at every step, more than {} make sense; use "
                  "parameter_server or hogwild, which move the rows that a batch "
                  "touches",
                  job.strategy_kind, architecture.parameter_count, job.task.model.kind, most));
}

[[noreturn]] void refuse_for_machine(const Job& job, const Architecture& architecture,
                                     const Shortage& shortage) {
  const double each = shortage.needed_bytes / static_cast<double>(shortage.workers);
  const bool one = shortage.workers == 1;
  throw ConfigError(
      "cluster.workers",
      fmt::format("{}{} of strategy.kind = \"{}\" {} {}{} for {} parameters, the optimizer and a "
                  "batch, more than the {} of this machine; use a smaller task.model or "
                  "task.global_batch{}, or simulate it (cluster.fabric = \"virtual\")",
                  place_of(job, "cluster.workers"),
                  one ? "a worker" : fmt::format("{} workers", shortage.workers), job.strategy_kind,
                  one ? "needs" : "need", human_quantity(shortage.needed_bytes, Unit::kBytes),
                  one ? "" : fmt::format(" ({} each)", human_quantity(each, Unit::kBytes)),
                  architecture.parameter_count, human_quantity(shortage.there_bytes, Unit::kBytes),
                  one ? "" : ", fewer cluster.workers"));
}

}  // namespace

void validate_memory(const Job& job, const Architecture& architecture, size_t samples) {
  const auto shortage = shortage_of_memory(job, architecture, samples);
  if (!shortage) return;
  if (job.cluster.fabric != "virtual") refuse_for_machine(job, architecture, *shortage);
  const bool alike = job.cluster.memory_factors.empty();
  throw ConfigError(
      "cluster.memory",
      fmt::format("{}{} of strategy.kind = \"{}\" needs {} for its part of {} parameters, of the "
                  "optimizer and of a batch, more than cluster.memory = {}{}; raise it, or split "
                  "the model: `tutti advise` says how it would fit",
                  place_of(job, "cluster.memory"),
                  alike ? "a worker" : fmt::format("worker {}", shortage->worker),
                  job.strategy_kind, human_quantity(shortage->needed_bytes, Unit::kBytes),
                  architecture.parameter_count,
                  human_quantity(job.cluster.memory_bytes, Unit::kBytes),
                  alike ? ""
                        : fmt::format(" leaves it with cluster.memory_factors, {}",
                                      human_quantity(shortage->there_bytes, Unit::kBytes))));
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

Architecture trained_architecture(const Job& job, const Dataset& dataset) {
  const Architecture model = make_architecture(job.task.model, dataset);
  return job.strategy->arrange({job.task, job.cluster, job.optimizer, model});
}

void settle(Job& job, const Architecture& architecture, size_t samples) {
  Job copy;  // holds the strategy only: copies of the job may share the original
  copy.strategy_kind = job.strategy_kind;
  copy.strategy = job.strategy;
  job.strategy = with_settings(copy, {}).strategy;
  const ClusterConfig cluster = job.cluster;
  job.strategy->settle({job.task, cluster, job.optimizer, architecture, samples}, job.cluster);
}

Prepared prepare(const Job& job) {
  try {
    Data data = load_data(job.task.data, job.task.seed, job.base_dir);
    validate(job, data);
    data.dataset = dataset_for(job.task.model, std::move(data.dataset));
    Architecture architecture = trained_architecture(job, *data.dataset);
    validate_rows(job, architecture);
    job.strategy->validate_plan({job.task, job.cluster, job.optimizer, architecture});
    return {std::move(data), std::move(architecture)};
  } catch (const ConfigError& error) {
    throw ConfigError(error.key(), placed(job.places, error.key(), error.key(), error.what()));
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}task.data: {}", place_of(job, "task.data.path"), error.what()));
  }
}

}  // namespace tutti
