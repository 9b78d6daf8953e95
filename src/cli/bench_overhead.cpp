// `tutti bench overhead` measures the fixed cost of a pass over a batch and of each layer in it.
// The defaults of cluster.step_overhead and cluster.layer_overhead are its results, rounded.
//
// Each model is timed as `tutti advise` times it. Its overheads are scaled by the reference kernel
// to the core that they are declared for, so that figures of different machines can be compared.
#include <fmt/format.h>

#include "cli/bench.h"
#include "jobs/job.h"
#include "testbed/model_cost.h"

namespace tutti {
namespace {

using nlohmann::json;

struct OverheadCase {
  std::string name;
  std::vector<std::string> settings;
};

const std::vector<OverheadCase>& overhead_cases() {
  static const std::vector<OverheadCase> cases = {
      {"logistic 16",
       {"task.data={kind=\"synthetic-classes\", features=16}", "task.model=logistic"}},
      {"mlp 32-16",
       {"task.data={kind=\"synthetic-classes\", features=16}",
        "task.model={kind=\"mlp\", hidden=[32, 16]}"}},
      {"mlp 8 x 32",
       {"task.data={kind=\"synthetic-classes\", features=32}",
        "task.model={kind=\"mlp\", hidden=[32, 32, 32, 32, 32, 32, 32, 32]}"}},
      {"mlp 256-256",
       {"task.data={kind=\"synthetic-classes\", features=784}",
        "task.model={kind=\"mlp\", hidden=[256, 256]}"}},
      {"lenet 6-16", {"task.data=fashion-mnist", "task.model={kind=\"lenet\", channels=[6, 16]}"}},
      {"lenet 20-50", {"task.data=fashion-mnist", "task.model=lenet"}},
      {"resnet20", {"task.data=fashion-mnist", "task.model=resnet20"}},
  };
  return cases;
}

struct OverheadFigures {
  size_t parameters = 0, layers = 0;
  std::vector<double> fixed_s, error, share;

  double runs() const { return 2 * static_cast<double>(layers); }  // layer calls in a gradient

  void add(const ModelCost& cost, const Job& job) {
    const double here_s = cost.step_s + runs() * cost.layer_s;
    // Overheads are declared for a core of the reference speed.
    fixed_s.push_back(here_s * cost.reference_flops / kReferenceFlops);
    error.push_back(cost.error);
    share.push_back(here_s / (here_s + static_cast<double>(job.task.global_batch) * cost.sample_s));
  }
};

// Finds the two numbers that fit all models best, by least squares of the relative errors, because
// a cluster declares one pair for all. A model whose samples hide its fixed cost is left out.
PassCosts common_costs(const std::vector<OverheadFigures>& all) {
  std::vector<TimedPass> passes;
  for (const OverheadFigures& figures : all)
    if (const double fixed_s = median(figures.fixed_s); fixed_s > 0)
      passes.push_back({.layers = figures.runs(), .samples = 0, .seconds = fixed_s, .batch = 0});
  return fit_pass_costs(passes);
}

json row_of(const OverheadCase& one, const OverheadFigures& figures, const PassCosts& common) {
  return {{"case", one.name},
          {"parameters", figures.parameters},
          {"layers", figures.layers},
          {"fixed_s", median(figures.fixed_s)},
          {"fixed_by_common_s", common.step_s + figures.runs() * common.layer_s},
          {"fit_error", median(figures.error)},
          {"fixed_share", median(figures.share)}};
}

void print_table(const json& rows) {
  fmt::print("\n{:<14} {:>10} {:>7} {:>16} {:>15} {:>10} {:>16}\n", "model", "parameters", "layers",
             "of a step, us", "by both, us", "fit error", "fixed, batch 64");
  for (const json& row : rows) {
    if (!row.contains("layers")) continue;
    fmt::print("{:<14} {:>10} {:>7} {:>16.0f} {:>15.0f} {:>8.0f} % {:>14.0f} %\n",
               row["case"].get<std::string>(), row["parameters"].get<size_t>(),
               row["layers"].get<size_t>(), 1e6 * row["fixed_s"].get<double>(),
               1e6 * row["fixed_by_common_s"].get<double>(), 100 * row["fit_error"].get<double>(),
               100 * row["fixed_share"].get<double>());
  }
  const json& both = rows.back();
  const auto us = [&](const char* key) { return 1e6 * both[key].get<double>(); };
  fmt::print(
      "\nfixed cost of a step on a core of 20 GFLOP/s, without what its samples take\n"
      "by both: {:.1f} us a pass + {:.2f} us a layer, forward and backward; error {:.0f} %\n"
      "defaults of [cluster]: step_overhead {:.1f} us, layer_overhead {:.2f} us\n",
      us("step_overhead_s"), us("layer_overhead_s"), 100 * both["error"].get<double>(),
      us("default_step_overhead_s"), us("default_layer_overhead_s"));
}

}  // namespace

json bench_overhead(const BenchOptions& options, const std::atomic<bool>& stop) {
  const std::vector<OverheadCase>& cases = overhead_cases();
  std::vector<Job> jobs;
  std::vector<Resolved> resolved;
  std::vector<OverheadFigures> figures(cases.size());
  for (const OverheadCase& one : cases) {
    std::vector<std::string> settings = one.settings;
    settings.emplace_back("task.global_batch=64");
    jobs.push_back(load_job("", settings));
    resolved.push_back(resolve(jobs.back()));
  }
  for (int round = 0; round < options.rounds; ++round)
    for (size_t i = 0; i < cases.size(); ++i) {
      leave_if_stopped(stop);
      say(options, fmt::format("overhead: {}, round {}", cases[i].name, round + 1));
      figures[i].parameters = resolved[i].architecture.parameter_count;
      figures[i].layers = resolved[i].architecture.layers.size();
      figures[i].add(measure_model_cost(jobs[i], resolved[i]), jobs[i]);
    }
  const PassCosts common = common_costs(figures);
  json rows = json::array();
  for (size_t i = 0; i < cases.size(); ++i) rows.push_back(row_of(cases[i], figures[i], common));
  rows.push_back({{"case", "all models"},
                  {"step_overhead_s", common.step_s},
                  {"layer_overhead_s", common.layer_s},
                  {"error", common.error},
                  {"default_step_overhead_s", ClusterConfig().step_overhead_s},
                  {"default_layer_overhead_s", ClusterConfig().layer_overhead_s}});
  if (!options.json) print_table(rows);
  return rows;
}

}  // namespace tutti
