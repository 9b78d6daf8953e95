#include "testbed/advise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/isolated_run.h"
#include "fabric/virtual/validation.h"
#include "testbed/choice.h"
#include "testbed/clusters.h"
#include "testbed/model_cost.h"
#include "testbed/time_to_target.h"
#include "testbed/variants.h"
#include "testbed/what_if.h"

namespace tutti {
namespace {

using nlohmann::json;

// Real gradients of so many simulated workers are computed on this machine.
constexpr int64_t kMostWorkers = 8;

json to_json(const ModelCost& cost, const Job& job, const Architecture& architecture) {
  const ClusterConfig& cluster = job.cluster;
  const auto batch = static_cast<double>(job.task.global_batch);
  json timed = json::array();
  for (const TimedPass& pass : cost.timed)
    timed.push_back(
        {{"batch", pass.batch},
         {"pass",
          pass.layers > static_cast<double>(architecture.layers.size()) ? "gradient" : "forward"},
         {"seconds", pass.seconds}});
  return {{"sample_s", cost.sample_s},
          {"step_s", cost.step_s},
          {"layer_s", cost.layer_s},
          {"layers", architecture.layers.size()},
          {"fit_error", cost.error},
          {"noise", cost.noise},
          {"error", cost.half_width()},
          {"least_sample", cost.least_sample},
          {"timed", timed},
          {"flops", cost.flops},
          {"reference_flops", cost.reference_flops},
          {"efficiency", cost.efficiency()},
          {"step_overhead", cluster.step_overhead_s},
          {"layer_overhead", cluster.layer_overhead_s},
          {"speed", cluster.speed_flops},
          {"fixed_share", fixed_share(cluster, architecture, batch)},
          {"fixed_share_spread",
           fixed_share(cluster, architecture, batch / static_cast<double>(cluster.workers))}};
}

json describe(const Job& job, const Resolved& task) {
  const ClusterConfig& cluster = job.cluster;
  return {{"task",
           {{"name", job.name},
            {"data", job.task.data.kind()},
            {"model", job.task.model.kind()},
            {"target", job.task.target},
            {"metric", task.architecture.classification ? "accuracy" : "mse"},
            {"global_batch", job.task.global_batch},
            {"parameters", task.architecture.parameter_count},
            {"flops_per_sample", task.architecture.training_flops()}}},
          {"cluster",
           {{"workers", cluster.workers},
            {"speed", cluster.speed_flops},
            {"bandwidth", cluster.bandwidth},
            {"latency_s", cluster.latency_s},
            {"racks", cluster.racks},
            {"nodes_per_host", cluster.nodes_per_host},
            {"memory_bytes", cluster.memory_bytes}}},
          {"simulation_error",
           {{"relative", kNetworkValidation.mean_absolute_error},
            {"source", fmt::format("measured {} by `{}`, docs/validation.md",
                                   kNetworkValidation.date, kNetworkValidation.command)}}},
          {"obtained", "estimated: simulated step times x steps from real gradients"}};
}

// One answer for every class of strategies that learn alike, and one for each other strategy.
void find_learning(std::vector<Choice>& choices, const Resolved& task, int seeds,
                   const Announce& announce, const std::atomic<bool>& stop) {
  std::vector<LearningQuestion> questions;
  std::map<std::string, size_t> classes;  // the question that each one asks
  std::vector<size_t> asked;              // by each choice
  for (const Choice& choice : choices) {
    const std::string& equal = choice.equivalence;
    const auto known = classes.find(equal);
    asked.push_back(known == classes.end() ? questions.size() : known->second);
    if (known != classes.end()) continue;
    if (!equal.empty()) classes[equal] = questions.size();
    questions.push_back({.job = choice.job,
                         .equivalence = equal,
                         .seeds = seeds > 0       ? seeds
                                  : equal.empty() ? 1
                                                  : 3,
                         .most_workers = kMostWorkers});
  }
  // Where no two of them learn alike, the first one shows how much seeds differ.
  const bool none_equal = classes.empty() && !questions.empty();
  if (none_equal) classes["the first"] = 0;
  if (none_equal && seeds <= 0) questions.front().seeds = 3;
  const std::vector<Learning> answers = measure_learning(questions, task.data, announce, stop);
  double spread = 0;
  for (const auto& [name, question] : classes) spread = std::max(spread, answers[question].error);
  for (size_t i = 0; i < choices.size(); ++i) {
    choices[i].learning = answers[asked[i]];
    // One run has no spread: then that of a class stands in.
    if (choices[i].learning.reached == 1) choices[i].learning.error = spread;
  }
}

// When each choice that learns gets to its target: simulated side by side on the cores here.
void find_times(std::vector<Choice>& choices, const std::vector<Plan>& plans, const Data& data,
                const Announce& announce, const std::atomic<bool>& stop) {
  std::vector<IsolatedWork> works;
  std::vector<Choice*> asked;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (!choices[i].reaches()) continue;
    asked.push_back(&choices[i]);
    works.push_back(
        [&choice = choices[i], &plan = plans[i], &data](const std::atomic<bool>& raised) {
          TimesToTarget found =
              times_to_target(choice.job, plan, choice.learning, data, kMostEffort, raised);
          found.times_s.push_back(found.error);
          return std::string(reinterpret_cast<const char*>(found.times_s.data()),
                             found.times_s.size() * sizeof(double));
        });
  }
  const std::vector<std::string> replies = run_side_by_side(
      "simulation", works,
      [&](size_t i) {
        announce(fmt::format("simulating {} to its target ({} of {})", asked[i]->name, i + 1,
                             works.size()));
      },
      stop);
  for (size_t i = 0; i < asked.size(); ++i) {
    std::vector<double>& values = asked[i]->times_s;
    values.resize(replies[i].size() / sizeof(double));
    std::memcpy(values.data(), replies[i].data(), replies[i].size());
    asked[i]->simulation_error = values.back();
    values.pop_back();
  }
  lend_spreads(choices);
}

// The job has the whole cluster, so that a comparison includes all strategies, and the costs that
// the advice was found with. It is planned again when it runs.
std::string job_to_hand_on(const Job& base, const Choice& best) {
  Job job = with_settings(best.open, {});
  job.cluster = base.cluster;
  job.cluster.colocated = best.open.cluster.colocated;
  return resolved_toml(job);
}

}  // namespace

json advise(const Job& job, const AdviseOptions& options, const Announce& announce,
            const std::atomic<bool>& stop) {
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
  Job loadable = with_settings(base, {"strategy={ kind = \"solo\" }"});  // the data alone:
  loadable.strategy->fit(loadable.cluster);  // strategies are judged one by one
  const Resolved task = resolve(loadable);

  if (!options.declared) announce("measuring the model on this machine");
  const ModelCost cost =
      options.declared ? declared_model_cost(base, task) : measure_model_cost(base, task);
  json advice = describe(base, task);
  if (!options.declared) use_model_cost(base.cluster, cost);
  advice["model_cost"] = to_json(cost, base, task.architecture);
  advice["model_cost"]["obtained"] = options.declared ? "declared" : "measured";

  std::vector<Choice> choices;
  std::vector<Plan> plans;
  json refused = json::array();
  const std::vector<std::string> everyone = {"all"};
  for (ComparedJob& candidate : compared_jobs(
           base, options.strategies.empty() ? everyone : options.strategies, Memory::kMayBeShort)) {
    if (!candidate.refusal.empty()) {
      refused.push_back({{"name", candidate.job.name}, {"reason", candidate.refusal}});
      continue;
    }
    Choice choice;
    choice.job = std::move(candidate.job);
    choice.open = std::move(candidate.open);
    choice.plan = candidate.plan.in_words;
    choice.equivalence = candidate.plan.equivalence;
    choice.name = choice.job.name;
    choice.cost_error = cost.half_width();
    announce(fmt::format("simulating {} on {} workers", choice.name, choice.job.cluster.workers));
    choice.step = simulate_steps(choice.job, task.data, stop);
    choice.memory_bytes = candidate.plan.most_memory_bytes();
    choice.fits = !shortage_of_memory(choice.job, candidate.plan);
    choices.push_back(std::move(choice));
    plans.push_back(std::move(candidate.plan));
  }
  find_learning(choices, task, options.seeds, announce, stop);
  find_times(choices, plans, task.data, announce, stop);
  rank(choices);

  advice["choices"] = json::array();
  for (const Choice& choice : choices) advice["choices"].push_back(to_json(choice));
  advice["refused"] = refused;
  const Choice& best = choices.front();
  advice["job"] = job_to_hand_on(base, best);
  advice["memory"] = memory_advice(best, task);
  if (options.quick || !best.reaches()) return advice;
  const WhatIf what_if{task, announce, stop};
  advice["bandwidth"] = what_if.bandwidth(choices);
  advice["workers"] = what_if.workers(choices);
  advice["batch"] = what_if.batch(best);
  advice["compression"] = what_if.compression(best);
  return advice;
}

}  // namespace tutti
