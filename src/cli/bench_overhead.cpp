// `tutti bench overhead`: what a pass over a batch costs whatever its size, and each of its layers.
// The defaults of cluster.step_overhead and cluster.layer_overhead are what it found.
//
// Each model is timed as `tutti advise` times it. Its overheads are scaled by the reference kernel
// to the core that they are declared for, so that figures of different machines can be compared.
#include <fmt/format.h>

#include <algorithm>

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
      {"logistic 16", {"task.data={kind=\"synthetic-classes\", features=16}", "task.model=logistic"}},
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
  std::vector<double> step_s, layer_s, error, fixed;

  // At the speed that overheads are declared for.
  void add(const ModelCost& cost, const Job& job) {
    const double scale = cost.reference_flops / kReferenceFlops;
    step_s.push_back(cost.step_s * scale);
    layer_s.push_back(cost.layer_s * scale);
    error.push_back(cost.error);
    const double fixed_s = cost.step_s + 2 * static_cast<double>(layers) * cost.layer_s;
    fixed.push_back(fixed_s /
                    (fixed_s + static_cast<double>(job.task.global_batch) * cost.sample_s));
  }
};

// One number for all models: that of which half of them need more and half need less.
json summary(const std::vector<OverheadFigures>& all) {
  std::vector<double> step_s, layer_s;
  for (const OverheadFigures& figures : all) {
    step_s.push_back(median(figures.step_s));
    layer_s.push_back(median(figures.layer_s));
  }
  return {{"case", "median over models"},
          {"step_overhead_s", median(step_s)},
          {"layer_overhead_s", median(layer_s)},
          {"default_step_overhead_s", ClusterConfig().step_overhead_s},
          {"default_layer_overhead_s", ClusterConfig().layer_overhead_s}};
}

void print_table(const json& rows) {
  fmt::print("\n{:<20} {:>10} {:>7} {:>12} {:>13} {:>10} {:>16}\n", "model", "parameters", "layers",
             "a pass, us", "a layer, us", "fit error", "fixed, batch 64");
  for (const json& row : rows) {
    if (!row.contains("layers")) continue;
    fmt::print("{:<20} {:>10} {:>7} {:>12.1f} {:>13.2f} {:>8.0f} % {:>14.0f} %\n",
               row["case"].get<std::string>(), row["parameters"].get<size_t>(),
               row["layers"].get<size_t>(), 1e6 * row["step_overhead_s"].get<double>(),
               1e6 * row["layer_overhead_s"].get<double>(), 100 * row["fit_error"].get<double>(),
               100 * row["fixed_share"].get<double>());
  }
  const json& all = rows.back();
  fmt::print("{:<39} {:>12.1f} {:>13.2f}\n{:<39} {:>12.1f} {:>13.2f}\n",
             all["case"].get<std::string>(), 1e6 * all["step_overhead_s"].get<double>(),
             1e6 * all["layer_overhead_s"].get<double>(), "default of [cluster]",
             1e6 * all["default_step_overhead_s"].get<double>(),
             1e6 * all["default_layer_overhead_s"].get<double>());
}

}  // namespace

json bench_overhead(const BenchOptions& options, const std::atomic<bool>& stop) {
  const std::vector<OverheadCase>& cases = overhead_cases();
  std::vector<Job> jobs;
  std::vector<Prepared> prepared;
  std::vector<OverheadFigures> figures(cases.size());
  for (const OverheadCase& one : cases) {
    std::vector<std::string> settings = one.settings;
    settings.emplace_back("task.global_batch=64");
    jobs.push_back(load_job("", settings));
    prepared.push_back(prepare(jobs.back()));
  }
  for (int round = 0; round < options.rounds; ++round)
    for (size_t i = 0; i < cases.size(); ++i) {
      leave_if_stopped(stop);
      say(options, fmt::format("overhead: {}, round {}", cases[i].name, round + 1));
      figures[i].parameters = prepared[i].architecture.parameter_count;
      figures[i].layers = prepared[i].architecture.layers.size();
      figures[i].add(measure_model_cost(jobs[i], prepared[i]), jobs[i]);
    }
  json rows = json::array();
  for (size_t i = 0; i < cases.size(); ++i)
    rows.push_back({{"case", cases[i].name},
                    {"parameters", figures[i].parameters},
                    {"layers", figures[i].layers},
                    {"step_overhead_s", median(figures[i].step_s)},
                    {"layer_overhead_s", median(figures[i].layer_s)},
                    {"fit_error", median(figures[i].error)},
                    {"fixed_share", median(figures[i].fixed)}});
  rows.push_back(summary(figures));
  if (!options.json) print_table(rows);
  return rows;
}

}  // namespace tutti
