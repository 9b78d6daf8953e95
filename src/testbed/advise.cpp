#include "testbed/advise.h"

#include <fmt/format.h>

#include "core/error.h"
#include "jobs/task_identity.h"
#include "testbed/advice_search.h"
#include "testbed/clusters.h"
#include "testbed/measured_records.h"
#include "testbed/model_cost.h"
#include "testbed/variants.h"
#include "testbed/what_if.h"

namespace tutti {
namespace {

// Real gradients of so many simulated workers are computed on this machine.
constexpr int64_t kMostWorkers = 8;

AdvisedModelCost described(const ModelCost& cost, const Job& job,
                           const Architecture& architecture) {
  const ClusterConfig& cluster = job.cluster;
  const auto batch = static_cast<double>(job.task.global_batch);
  const auto layers = static_cast<double>(architecture.layers.size());
  AdvisedModelCost result;
  result.sample_s = cost.sample_s;
  result.step_s = cost.step_s;
  result.layer_s = cost.layer_s;
  result.layers = std::ssize(architecture.layers);
  result.fit_error = cost.error;
  result.noise = cost.noise;
  result.error = cost.half_width();
  result.least_sample = cost.least_sample;
  result.flops = cost.flops;
  result.reference_flops = cost.reference_flops;
  result.efficiency = cost.efficiency();
  result.step_overhead = cluster.step_overhead_s;
  result.layer_overhead = cluster.layer_overhead_s;
  result.speed = cluster.speed_flops;
  for (const TimedPass& pass : cost.timed)
    result.timed.push_back(
        {pass.batch, pass.layers > layers ? "gradient" : "forward", pass.seconds});
  result.fixed_share = fixed_share(cluster, architecture, batch);
  result.fixed_share_spread =
      fixed_share(cluster, architecture, batch / static_cast<double>(cluster.workers));
  return result;
}

void describe_question(const Job& job, const Resolved& task, Advice& advice) {
  const ClusterConfig& cluster = job.cluster;
  advice.task = {.name = job.name,
                 .data = std::string(job.task.data.kind()),
                 .model = std::string(job.task.model.kind()),
                 .metric = task.architecture.classification ? "accuracy" : "mse",
                 .target = job.task.target,
                 .global_batch = job.task.global_batch,
                 .parameters = static_cast<int64_t>(task.architecture.parameter_count),
                 .flops_per_sample = task.architecture.training_flops()};
  advice.cluster = {.workers = cluster.workers,
                    .racks = cluster.racks,
                    .nodes_per_host = cluster.nodes_per_host,
                    .speed = cluster.speed_flops,
                    .bandwidth = cluster.bandwidth,
                    .latency_s = cluster.latency_s,
                    .memory_bytes = cluster.memory_bytes};
  advice.simulation_error = {kNetworkValidation.mean_absolute_error,
                             fmt::format("measured {} by `{}`, docs/validation.md",
                                         kNetworkValidation.date, kNetworkValidation.command)};
}

// The job has the whole cluster, so that a comparison includes all strategies, and the costs that
// the advice was found with. It is planned again when it runs.
std::string job_to_hand_on(const Job& base, const Choice& best) {
  Job job = with_settings(best.open, {});
  job.cluster = base.cluster;
  job.cluster.colocated = best.open.cluster.colocated;
  return resolved_toml(job);
}

// The strategies that are possible on the cluster, planned. The others are refused.
std::vector<Candidate> candidates_for(const Job& base, const AdviseOptions& options,
                                      const Resolved& task, double cost_error, Advice& advice) {
  std::vector<Candidate> candidates;
  const std::vector<std::string> everyone = {"all"};
  for (ComparedJob& compared : compared_jobs(
           base, options.strategies.empty() ? everyone : options.strategies, Memory::kMayBeShort)) {
    if (!compared.refusal.empty()) {
      advice.refused.push_back({compared.job.name, compared.job.strategy_kind, compared.refusal});
      continue;
    }
    Choice choice;
    choice.job = std::move(compared.job);
    choice.open = std::move(compared.open);
    choice.plan = compared.plan.in_words;
    choice.equivalence = compared.plan.equivalence;
    choice.name = choice.job.name;
    choice.cost_error = cost_error;
    choice.history_error = options.history;
    choice.memory_bytes = compared.plan.most_memory_bytes();
    choice.fits = !shortage_of_memory(choice.job, compared.plan);
    candidates.push_back(candidate_of(std::move(choice), std::move(compared.plan),
                                      std::ssize(task.data.splits.train)));
  }
  return candidates;
}

// The job with the cluster to advise for.
Job job_to_judge(const Job& job, const AdviseOptions& options) {
  if (job.task.target <= 0)
    throw ConfigError("task.target",
                      "task.target is missing: advice is about the time to reach it; add "
                      "task.target to the job, or --set task.target=0.9");
  Job base = with_settings(job, {});
  base.compare.clear();
  if (!options.cluster.empty())
    base.cluster = load_cluster(options.cluster);
  else if (base.cluster.fabric != FabricKind::kVirtual)
    throw ConfigError("--cluster",
                      fmt::format("the job's own cluster has cluster.fabric = \"{}\"; name one to "
                                  "advise for, e.g. --cluster rack-1g (recipes/clusters)",
                                  word_of(base.cluster.fabric)));
  return base;
}

}  // namespace

Advice advise(const Job& job, const AdviseOptions& options, const Announce& announce,
              const std::atomic<bool>& stop) {
  Job base = job_to_judge(job, options);
  Job loadable = with_settings(base, {"strategy={ kind = \"solo\" }"});  // the data alone:
  loadable.strategy->fit(loadable.cluster);  // strategies are judged one by one
  const Resolved task = resolve(loadable);
  if (const std::string remarks = remarks_on(task.data); !remarks.empty()) options.noticed(remarks);
  const TaskIdentity identity = task_identity(base, task);
  LearningCache cache(options.cache, identity, base, announce);

  if (!options.declared) announce("measuring the model on this machine");
  const ModelCost cost =
      options.declared ? declared_model_cost(base, task) : measure_model_cost(base, task);
  Advice advice;
  describe_question(base, task, advice);
  if (!options.declared) use_model_cost(base.cluster, cost);
  advice.model_cost = described(cost, base, task.architecture);
  advice.model_cost.obtained = options.declared ? "declared" : "measured";

  announce("planning each strategy");
  std::vector<Candidate> possible = candidates_for(base, options, task, cost.half_width(), advice);
  AdviceSearch search(
      Candidates(std::move(possible), options.seeds, kMostWorkers,
                 options.complete ? Thoroughness::kComplete : Thoroughness::kWhatMatters),
      task, base.cluster, options, cache, announce);
  advice.status = search.run(stop);
  search.describe(advice);
  const std::vector<Choice> ranked = search.ranked();
  if (ranked.empty()) {
    if (advice.status == AdviceStatus::kInterrupted) throw InterruptedError();
    if (advice.status == AdviceStatus::kBudget)
      throw ConfigError("--budget",
                        "--budget ended before any strategy was simulated; give it more time, or "
                        "ask about some strategies by --strategies");
    const Refusal& failed = advice.refused.back();
    throw Error(fmt::format("no simulation ended well; {}: {}", failed.name, failed.reason));
  }
  const Choice& best = ranked.front();
  advice.job = job_to_hand_on(base, best);
  advice.job_to_run = resolved_toml(with_settings(best.open, {}));
  advice.task_fingerprint = identity.fingerprint;
  advice.error_of_simulation = best.errors().of_a_simulation();
  advice.memory = memory_advice(best, task);
  advice.sentence = sentence_of(advice);
  return advice;
}

}  // namespace tutti
