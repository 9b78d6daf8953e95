// `tutti check`: everything that can be said of a job without starting it.
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "jobs/job.h"
#include "jobs/predict_cost.h"
#include "jobs/run_record.h"

namespace tutti {

int run_check(const JobOptions& options) {
  Job job = job_of(options);
  const Prepared prepared = prepare(job);
  const auto& [data, architecture] = prepared;
  const std::vector<std::string> reasons = job.strategy->explain(
      {job.task, job.cluster, job.optimizer, architecture, data.splits.train.size()});
  settle(job, architecture, data.splits.train.size());
  validate_memory(job, architecture, data.splits.train.size());
  const Plan plan{job.task, job.cluster, job.optimizer, architecture, data.splits.train.size()};
  const StepCost cost = job.strategy->step_cost(plan);
  const double memory = predicted_memory_bytes(job, architecture, plan.samples);
  const int64_t steps = predicted_steps(job, data);
  const double flops = architecture.training_flops() * static_cast<double>(job.task.global_batch);
  if (options.json) {
    std::cout << json_text({{"job", job.name},
                            {"ok", true},
                            {"samples",
                             {{"train", data.splits.train.size()},
                              {"validation", data.splits.validation.size()},
                              {"test", data.splits.test.size()}}},
                            {"parameters", architecture.parameter_count},
                            {"steps", steps},
                            {"flops_per_step", flops},
                            {"memory_bytes_per_worker", memory},
                            {"data_bytes", data.dataset->memory_bytes()},
                            {"bytes_sent_per_step", cost.bytes_sent},
                            {"messages_per_step", cost.messages},
                            {"plan", reasons}})
              << "\n";
    return 0;
  }
  const Taxonomy taxonomy = job.strategy->taxonomy();
  fmt::print("job       {}: ok\n", job.name);
  fmt::print("data      {}: {} training, {} validation, {} test samples, {}\n", job.task.data.kind,
             data.splits.train.size(), data.splits.validation.size(), data.splits.test.size(),
             human_quantity(static_cast<double>(data.dataset->memory_bytes()), Unit::kBytes));
  if (const std::string text = features_text(data); !text.empty())
    fmt::print("features  {}\n", text);
  fmt::print("model     {}: {} parameters, {:.3g} FLOP per step\n", job.task.model.kind,
             architecture.parameter_count, flops);
  fmt::print("strategy  {}: {}, {} parallel, {}, {}, {}\n", job.strategy_kind, taxonomy.structure,
             taxonomy.parallelism, taxonomy.optimisation, taxonomy.timing, taxonomy.pattern);
  fmt::print("cluster   {}, {} workers\n", job.cluster.fabric, job.cluster.workers);
  for (const std::string& line : reasons) fmt::print("plan      {}\n", line);
  // A process also holds the program itself; and it sends large messages in pieces.
  const bool real = job.cluster.fabric != "virtual";
  fmt::print(
      "expect    {} steps; per worker {} of memory{}; per step at most {} sent by a node, in {} "
      "messages{}\n",
      steps, human_quantity(memory, Unit::kBytes), real ? " and some 160 MB for the program" : "",
      human_quantity(cost.bytes_sent, Unit::kBytes), cost.messages,
      real && cost.messages > 0 ? " or, in pieces, more" : "");
  return 0;
}

}  // namespace tutti
