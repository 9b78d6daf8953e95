// `tutti check`: everything that can be said of a job without starting it.
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "core/printable.h"
#include "fabric/capabilities.h"
#include "jobs/plan_difference.h"
#include "jobs/plan_json.h"
#include "jobs/resolve.h"
#include "jobs/run_record.h"

namespace tutti {

namespace {

int print_changes(const CheckOptions& options) {
  JobOptions first = options;
  first.job = options.before;
  const std::vector<PlanChange> changes =
      plan_changes(resolve(job_of(first)), resolve(job_of(options)));
  if (options.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const PlanChange& change : changes)
      list.push_back({{"about", change.about}, {"change", change.text}});
    std::cout << json_text({{"from", options.before}, {"to", options.job}, {"changes", list}})
              << "\n";
    return 0;
  }
  fmt::print("from {} to {}:\n", printable(options.before), printable(options.job));
  for (const PlanChange& change : changes) fmt::print("{}: {}\n", change.about, change.text);
  return 0;
}

}  // namespace

int run_check(const CheckOptions& options) {
  if (!options.before.empty()) return print_changes(options);
  const auto& [job, data, architecture, plan] = resolve(job_of(options));
  require_memory(job, plan);
  const NodePlan& busiest = plan.busiest();
  const double memory = plan.most_memory_bytes();
  const double flops = architecture.training_flops() * static_cast<double>(job.task.global_batch);
  if (options.json) {
    std::cout << json_text({{"job", job.name},
                            {"ok", true},
                            {"samples",
                             {{"train", data.splits.train.size()},
                              {"validation", data.splits.validation.size()},
                              {"test", data.splits.test.size()}}},
                            {"parameters", architecture.parameter_count},
                            {"steps", plan.steps},
                            {"flops_per_step", flops},
                            {"memory_bytes_per_worker", memory},
                            {"data_bytes", data.dataset->memory_bytes()},
                            {"bytes_sent_per_step", busiest.bytes_sent},
                            {"messages_per_step", busiest.messages},
                            {"plan", plan.reasons},
                            {"planned", to_json(plan)}})
              << "\n";
    return 0;
  }
  const Taxonomy& taxonomy = plan.taxonomy;
  fmt::print("job       {}: ok\n", job.name);
  fmt::print("data      {}: {} training, {} validation, {} test samples, {}\n",
             job.task.data.kind(), data.splits.train.size(), data.splits.validation.size(),
             data.splits.test.size(),
             human_quantity(static_cast<double>(data.dataset->memory_bytes()), Unit::kBytes));
  if (const std::string text = features_text(data); !text.empty())
    fmt::print("features  {}\n", text);
  fmt::print("model     {}: {} parameters, {:.3g} FLOP per step\n", job.task.model.kind(),
             architecture.parameter_count, flops);
  fmt::print("strategy  {}: {}, {} parallel, {}, {}, {}\n", job.strategy_kind, taxonomy.structure,
             taxonomy.parallelism, taxonomy.optimisation, taxonomy.timing, taxonomy.pattern);
  fmt::print("cluster   {}, {} workers\n", job.cluster.fabric, job.cluster.workers);
  for (const std::string& line : plan.reasons) fmt::print("plan      {}\n", line);
  // A process also holds the program itself; and it sends large messages in pieces.
  const bool real = !capabilities_of(job.cluster).declared_hosts;
  fmt::print(
      "expect    {} steps; per worker {} of memory{}; per step at most {} sent by a node, in {} "
      "messages{}\n",
      plan.steps, human_quantity(memory, Unit::kBytes),
      real ? " and some 160 MB for the program" : "",
      human_quantity(busiest.bytes_sent, Unit::kBytes), busiest.messages,
      real && busiest.messages > 0 ? " or, in pieces, more" : "");
  return 0;
}

}  // namespace tutti
