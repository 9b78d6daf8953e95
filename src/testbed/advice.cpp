#include "testbed/advice.h"

#include <cmath>

#include "core/error.h"
#include "core/schema.h"
#include "jobs/footprint.h"
#include "testbed/places.h"

namespace tutti {

constexpr Presence kWhenKnown = Presence::kWhenKnown;

void visit(RecordVisitor& v, AdvisedTask& task) {
  v.field("name", task.name, "Name of the job");
  v.field("data", task.data, "`task.data.kind`");
  v.field("model", task.model, "`task.model.kind`");
  v.field("target", task.target, "`task.target`");
  v.field("metric", task.metric, "`accuracy` or `mse`");
  v.field("global_batch", task.global_batch, "`task.global_batch`");
  v.field("parameters", task.parameters, "Number of parameters of the model");
  v.field("flops_per_sample", task.flops_per_sample, "Operations to train with one sample");
}

void visit(RecordVisitor& v, AdvisedCluster& cluster) {
  v.field("workers", cluster.workers, "`cluster.workers`");
  v.field("speed", cluster.speed, "Operations per second of one core, as declared");
  v.field("bandwidth", cluster.bandwidth, "Bytes per second of a host's link");
  v.field("latency_s", cluster.latency_s, "Of a host's link, one way");
  v.field("racks", cluster.racks, "`cluster.racks`");
  v.field("nodes_per_host", cluster.nodes_per_host, "`cluster.nodes_per_host`");
  v.field("memory_bytes", cluster.memory_bytes, "Memory of a node");
}

void visit(RecordVisitor& v, AdvisedPass& pass) {
  v.field("batch", pass.batch, "Samples in the batch");
  v.field("pass", pass.pass, "`gradient` or `forward`");
  v.field("seconds", pass.seconds, "Median");
}

void visit(RecordVisitor& v, AdvisedModelCost& cost) {
  v.field("obtained", cost.obtained, "`measured` here or `declared` by the cluster");
  v.field("sample_s", cost.sample_s, "Of each sample of a batch, forward and backward");
  v.field("step_s", cost.step_s, "Of a gradient, for any batch");
  v.field("layer_s", cost.layer_s, "Of each layer, forward or backward");
  v.field("layers", cost.layers, "Number of layers");
  v.field("fit_error", cost.fit_error, "Of the three times above, relative");
  v.field("noise", cost.noise, "Of measuring, relative");
  v.field("error", cost.error, "Half the width of the interval of 90 % of both, relative");
  v.field("least_sample", cost.least_sample,
          "A sample costs too little to be measured: `sample_s` is a lower bound");
  v.field("timed", cost.timed, "The passes that were timed");
  v.field("flops", cost.flops, "Operations per second when samples dominate the time");
  v.field("reference_flops", cost.reference_flops, "Those of the reference kernel");
  v.field("efficiency", cost.efficiency, "The ratio of the two");
  v.field("step_overhead", cost.step_overhead, "`cluster.step_overhead` of the advice");
  v.field("layer_overhead", cost.layer_overhead, "`cluster.layer_overhead` of the advice");
  v.field("speed", cost.speed, "`cluster.speed` of the advice");
  v.field("fixed_share", cost.fixed_share,
          "Share of a step on one node that does not depend on samples");
  v.field("fixed_share_spread", cost.fixed_share_spread,
          "The same where the batch is spread over all workers");
}

void visit(RecordVisitor& v, SimulationError& error) {
  v.field("relative", error.relative, "Of simulated network times against measured ones");
  v.field("source", error.source, "Where that is from");
}

void visit(RecordVisitor& v, AdvisedErrors& errors) {
  v.field("seeds", errors.seeds, "Of another seed; null where no strategy ran with two");
  v.field("simulation", errors.simulation, "Of what was not simulated of a run");
  v.field("cost", errors.cost, "Of the model's cost, as it was measured here");
  v.field("network", errors.network, "Of simulated networks against measured ones");
  v.field("history", errors.history,
          "Of what real runs of earlier predictions were off beyond the others", kWhenKnown);
}

void visit(RecordVisitor& v, AdvisedShares& shares) {
  v.field("compute", shares.compute, "Share of a step");
  v.field("communicate", shares.communicate, "Share of a step");
  v.field("aggregate", shares.aggregate, "Share of a step");
  v.field("wait", shares.wait, "Share of a step");
}

void visit(RecordVisitor& v, AdvisedChoice& c) {
  v.field("name", c.name, "Name of the variant");
  v.field("strategy", c.strategy, "`strategy.kind`");
  v.field("workers", c.workers, "Workers that it uses");
  v.field("plan", c.plan, "What was planned, in words");
  v.field("where", c.where, "The nodes that it uses, in words");
  v.field("machines", c.machines, "Number of machines");
  v.field("of_nodes", c.of_nodes, "Nodes of the cluster, where it does better without some",
          kWhenKnown);
  v.field("reached", c.reached, "Whether the target was reached with gradients");
  v.field("runs", c.runs, "Runs with gradients, one for each seed; absent: its curve is assumed",
          kWhenKnown);
  v.field("runs_reached", c.runs_reached,
          "How many of these reached the target; who misses some comes after all that do not",
          kWhenKnown);
  v.field("fits", c.fits, "Whether it fits the memory of every node");
  v.field("place_first", c.place_first, "The best place that it may have; null: not judged");
  v.field("place_last", c.place_last,
          "The worst place that it may have; all behind it are surely slower, or miss seeds");
  v.field("behind", c.behind,
          "How much longer it takes than the first choice, relative: by the geometric mean of the "
          "ratios over the seeds of both, while `time_s` is an arithmetic mean");
  v.field("behind_error", c.behind_error, "Of that difference, at 90 %");
  v.field("assumed", c.assumed, "What its time assumes where its learning curve was not computed",
          kWhenKnown);
  v.field("left_out", c.left_out, "Why its own curve was not computed", kWhenKnown);
  v.field("time_s", c.time_s, "Time to target");
  v.field("error", c.error, "Of the time at 90 %, relative: how much longer it may take");
  v.field("least_s", c.least_s, "The lower end of that interval: `time_s / (1 + error)`",
          Presence::kMayMiss);
  v.field("most_s", c.most_s, "The upper end: `time_s * (1 + error)`", Presence::kMayMiss);
  v.field("errors", c.errors, "What that consists of");
  v.field("joules", c.joules, "Energy of the cluster until then");
  v.field("co2e_g", c.co2e_g, "Grams of CO2e of that energy");
  v.field("cost", c.cost, "Price of the machines until then");
  v.field("currency", c.currency, "Of the price");
  v.field("step_s", c.step_s, "Time of a step, with its share of the evaluations");
  v.field("step_error", c.step_error, "Half its spread over seeds of stragglers, relative");
  v.field("steps_to_target", c.steps_to_target, "Steps to the target");
  v.field("steps_error", c.steps_error, "Half their spread over seeds, relative");
  v.field("bytes_per_step", c.bytes_per_step, "Bytes that the busiest node sends in a step");
  v.field("messages_per_step", c.messages_per_step, "Messages of that node in a step");
  v.field("shares", c.shares, "What a node's time in a step goes into");
  v.field("busiest_link", c.busiest_link, "Share of a step in which the busiest link is full");
  v.field("memory_bytes", c.memory_bytes, "Memory of the node that needs most");
  v.field("learning", c.learning, "How its steps to the target were found");
  v.field("reasons", c.reasons, "What its time goes into, in sentences");
}

void visit(RecordVisitor& v, TriedNodes& tried) {
  v.field("name", tried.name, "Name of the variant");
  v.field("where", tried.where, "The nodes");
  v.field("change", tried.change, "Of the time to target, relative to that on all nodes");
  v.field("taken", tried.taken, "Whether the advice is for these nodes");
}

void visit(RecordVisitor& v, Advice& advice) {
  std::string status(word_of(advice.status));
  v.field("status", status, "`complete`, `budget used` or `interrupted`");
  if (v.reads()) advice.status = value_of(status, advice.status);
  v.field("sentence", advice.sentence, "The answer");
  v.field("task", advice.task, "What is to be learned");
  v.field("cluster", advice.cluster, "The cluster that the advice is for");
  v.field("simulation_error", advice.simulation_error, "The error of simulated networks");
  v.field("obtained", advice.obtained, "How times were found");
  v.field("model_cost", advice.model_cost, "What a pass of the model costs");
  v.field("choices", advice.choices, "The first choice first");
  v.field("refused", advice.refused, "What is not possible on this cluster");
  v.field("not_simulated", advice.not_simulated, "Variants for which the budget did not last",
          kWhenKnown);
  v.field("not_asked", advice.not_asked, "Questions for which the budget did not last", kWhenKnown);
  v.field("tried_nodes", advice.tried_nodes, "Other nodes that the best choices were tried on",
          kWhenKnown);
  v.field("learned_before", advice.learned_before, "Where lessons of an earlier advice are kept",
          kWhenKnown);
  v.field("job", advice.job, "The first choice as a job, with the whole cluster");
  v.field("job_to_run", advice.job_to_run, "The same with the nodes alone that it uses");
  v.field("memory", advice.memory, "What fits a node");
  v.field("bandwidth", advice.bandwidth, "Who is first on other networks", kWhenKnown);
  v.field("workers", advice.workers, "The time on fewer workers", kWhenKnown);
  v.field("batch", advice.batch, "The time with other batches", kWhenKnown);
  v.field("compression", advice.compression, "What fewer bytes would save", kWhenKnown);
}

AdvisedChoice described(const Choice& c) {
  AdvisedChoice result;
  result.name = c.name;
  result.strategy = c.job.strategy_kind;
  result.plan = c.plan;
  result.where = where(c);
  result.currency = c.job.footprint.currency;
  result.learning = c.learning.method;
  result.workers = c.job.cluster.workers;
  result.machines = machines(c);
  result.reached = c.reaches() && c.assumed.empty();
  result.fits = c.fits;
  result.assumed = c.assumed;
  result.left_out = c.left_out;
  if (c.of_nodes > 0) result.of_nodes = c.of_nodes;
  if (c.assumed.empty() && c.learning.runs > 0) {
    result.runs = c.learning.runs;
    result.runs_reached = c.learning.reached;
  }
  result.step_s = c.step_s();
  result.step_error = c.step.step_error;
  result.bytes_per_step = c.step.bytes;
  result.messages_per_step = c.step.messages;
  result.shares = {c.step.compute, c.step.communicate, c.step.aggregate, c.step.wait};
  result.busiest_link = c.step.busiest_link;
  result.memory_bytes = c.memory_bytes;
  result.reasons = reasons(c);
  if (!c.reaches()) return result;
  result.time_s = c.time_s();
  result.error = c.error();
  const TimeInterval interval = interval_around(c.time_s(), c.error());
  result.least_s = interval.least;
  result.most_s = interval.most;
  const TimeErrors errors = c.errors();
  result.errors = {.seeds = {},
                   .simulation = errors.simulation,
                   .cost = errors.cost,
                   .network = errors.network,
                   .history = {}};
  if (c.history_error > 0) result.errors.history = errors.history;
  if (c.times_s.size() > 1 || c.lent) result.errors.seeds = errors.seeds;
  result.joules = c.joules();
  result.co2e_g = co2e_grams(c.job.footprint, c.joules()).value;
  result.cost = cost_of(c.job.footprint, c.job.cluster, std::llround(machines(c)), c.time_s())
                    .on_demand.value;
  result.steps_to_target = c.learning.steps;
  result.steps_error = c.learning.error;
  return result;
}

std::vector<AdvisedChoice> described(const std::vector<Choice>& ranked) {
  const std::vector<Place> where_they_are = places(ranked);
  std::vector<AdvisedChoice> result;
  for (const Choice& choice : ranked) {
    result.push_back(described(choice));
    const size_t i = result.size() - 1;
    if (i >= where_they_are.size()) continue;
    AdvisedChoice& judged = result.back();
    judged.place_first = static_cast<int64_t>(where_they_are[i].first);
    judged.place_last = static_cast<int64_t>(where_they_are[i].last);
    const Difference apart = difference(choice, ranked.front());
    judged.behind = std::expm1(apart.log_ratio);
    judged.behind_error = (1 + *judged.behind) * apart.error;
  }
  return result;
}

}  // namespace tutti
