// `tutti check`: everything that can be said of a job without starting it.
#include <fmt/format.h>

#include <iostream>
#include <iterator>
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

using nlohmann::json;

const std::atomic<bool> kNever{false};  // as a signal ends this command at once

json changes_json(const std::vector<PlanChange>& changes) {
  json list = json::array();
  for (const PlanChange& change : changes)
    list.push_back({{"about", change.about}, {"change", change.text}});
  return list;
}

void print_lines(const std::vector<PlanChange>& changes) {
  for (const PlanChange& change : changes) fmt::print("{}: {}\n", change.about, change.text);
}

int print_changes(const CheckOptions& options) {
  JobOptions first = options;
  first.job = options.before;
  const std::vector<PlanChange> changes =
      plan_changes(resolve(job_of(first, kNever)), resolve(job_of(options, kNever)));
  if (options.json) {
    std::cout << json_text({{"from", options.before},
                            {"to", options.job},
                            {"changes", changes_json(changes)}})
              << "\n";
    return 0;
  }
  fmt::print("from {} to {}:\n", printable(options.before), printable(options.job));
  print_lines(changes);
  return 0;
}

double flops_of(const Resolved& resolved) {
  return resolved.architecture.training_flops() *
         static_cast<double>(resolved.job.task.global_batch);
}

json check_json(const Resolved& resolved) {
  const Data& data = resolved.data;
  const Plan& plan = resolved.plan;
  return {{"job", resolved.job.name},
          {"ok", true},
          {"samples",
           {{"train", data.splits.train.size()},
            {"validation", data.splits.validation.size()},
            {"test", data.splits.test.size()}}},
          {"parameters", resolved.architecture.parameter_count},
          {"steps", plan.steps},
          {"flops_per_step", flops_of(resolved)},
          {"memory_bytes_per_worker", plan.most_memory_bytes()},
          {"data_bytes", data.dataset->memory_bytes()},
          {"bytes_sent_per_step", plan.busiest().bytes_sent},
          {"messages_per_step", plan.busiest().messages},
          {"plan", plan.reasons},
          {"planned", to_json(plan)}};
}

MembershipChange change_of(const CheckOptions& options, const Plan& plan) {
  MembershipChange change{.come = options.with};
  for (const int rank : options.without) {
    if (rank < 0 || rank >= std::ssize(plan.nodes))
      throw ConfigError("--without", fmt::format("--without {}: there is no such rank, as the plan "
                                                 "has ranks 0 to {}; name some of these",
                                                 rank, plan.nodes.size() - 1));
    if (!change.leaves(rank)) change.leave.push_back(rank);
  }
  return change;
}

void print_check(const Resolved& resolved) {
  const Job& job = resolved.job;
  const Data& data = resolved.data;
  const Plan& plan = resolved.plan;
  const NodePlan& busiest = plan.busiest();
  const Taxonomy& taxonomy = plan.taxonomy;
  fmt::print("job       {}: ok\n", job.name);
  fmt::print("data      {}: {} training, {} validation, {} test samples, {}\n",
             job.task.data.kind(), data.splits.train.size(), data.splits.validation.size(),
             data.splits.test.size(),
             human_quantity(static_cast<double>(data.dataset->memory_bytes()), Unit::kBytes));
  if (const std::string text = features_text(data); !text.empty())
    fmt::print("features  {}\n", text);
  if (const std::string text = classes_text(data); !text.empty())
    fmt::print("classes   {}\n", text);
  fmt::print("model     {}: {} parameters, {:.3g} FLOP per step\n", job.task.model.kind(),
             resolved.architecture.parameter_count, flops_of(resolved));
  fmt::print("strategy  {}: {}, {} parallel, {}, {}, {}\n", job.strategy_kind, taxonomy.structure,
             taxonomy.parallelism, taxonomy.optimisation, word_of(taxonomy.timing),
             taxonomy.pattern);
  fmt::print("cluster   {}, {} workers\n", word_of(job.cluster.fabric), job.cluster.workers);
  for (const std::string& line : plan.reasons) fmt::print("plan      {}\n", line);
  // A process also holds the program itself; and it sends large messages in pieces.
  const bool real = !capabilities_of(job.cluster).declared_hosts;
  fmt::print(
      "expect    {} steps; per worker {} of memory{}; per step at most {} sent by a node, in {} "
      "messages{}\n",
      plan.steps, human_quantity(plan.most_memory_bytes(), Unit::kBytes),
      real ? " and some 160 MB for the program" : "",
      human_quantity(busiest.bytes_sent, Unit::kBytes), busiest.messages,
      real && busiest.messages > 0 ? " or, in pieces, more" : "");
}

// The next plan, and what changes from the one that the job begins with.
int print_next(const CheckOptions& options, const Resolved& now) {
  const MembershipChange change = change_of(options, now.plan);
  const Resolved next = resolve(now, change);
  require_memory(next.job, next.plan);
  std::vector<PlanChange> changes = membership_changes(now.plan, change, next.plan);
  for (PlanChange& each : plan_changes(now, next)) changes.push_back(std::move(each));
  if (options.json) {
    json report = check_json(next);
    json ranks = json::array();
    for (const auto& rank : ranks_after(change, now.plan.workers, std::ssize(now.plan.nodes)))
      ranks.push_back(rank ? json(*rank) : json());
    report["without"] = change.leave;
    report["with"] = change.come;
    report["next_ranks"] = std::move(ranks);
    report["changes"] = changes_json(changes);
    std::cout << json_text(report) << "\n";
    return 0;
  }
  print_check(next);
  fmt::print("\n{}:\n", in_words(change));
  print_lines(changes);
  return 0;
}

}  // namespace

int run_check(const CheckOptions& options) {
  if (!options.before.empty()) return print_changes(options);
  const Resolved resolved = resolve(job_of(options, kNever));
  if (!options.without.empty() || options.with > 0) return print_next(options, resolved);
  require_memory(resolved.job, resolved.plan);
  if (options.json)
    std::cout << json_text(check_json(resolved)) << "\n";
  else
    print_check(resolved);
  return 0;
}

}  // namespace tutti
