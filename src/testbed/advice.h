// Advice: what `tutti advise --json` prints and what its text is made from. Described once:
// advice.cpp says how it is written and what docs/record_reference.md says of each key.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/described.h"
#include "testbed/choice.h"
#include "testbed/comparison.h"

namespace tutti {

struct AdvisedTask {
  std::string name, data, model, metric;
  double target = 0;
  int64_t global_batch = 0, parameters = 0;
  double flops_per_sample = 0;
};

struct AdvisedCluster {
  int64_t workers = 0, racks = 1, nodes_per_host = 1;
  double speed = 0, bandwidth = 0, latency_s = 0, memory_bytes = 0;
};

struct AdvisedPass {
  int64_t batch = 0;
  std::string pass;  // "gradient" or "forward"
  double seconds = 0;
};

struct AdvisedModelCost {
  std::string obtained;
  double sample_s = 0, step_s = 0, layer_s = 0;
  int64_t layers = 0;
  double fit_error = 0, noise = 0, error = 0;
  bool least_sample = false;
  std::vector<AdvisedPass> timed;
  double flops = 0, reference_flops = 0, efficiency = 0;
  double step_overhead = 0, layer_overhead = 0, speed = 0;
  double fixed_share = 0, fixed_share_spread = 0;
};

struct SimulationError {
  double relative = 0;
  std::string source;
};

struct AdvisedShares {
  double compute = 0, communicate = 0, aggregate = 0, wait = 0;
};

// Half widths of intervals of 90 %, relative to the time.
struct AdvisedErrors {
  std::optional<double> seeds, simulation, cost, network, history;
};

struct AdvisedChoice {
  std::string name, strategy, plan, where, currency, learning;
  int64_t workers = 0;
  double machines = 0;
  std::optional<int64_t> of_nodes;
  std::optional<int64_t> runs, runs_reached;  // one for each seed; empty: it learned nothing itself
  bool reached = false, fits = true;
  std::optional<int64_t> place_first, place_last;
  std::optional<double> behind, behind_error;
  std::string assumed, left_out;
  std::optional<double> time_s, error, least_s, most_s, joules, co2e_g, cost, steps_to_target,
      steps_error;
  AdvisedErrors errors;
  double step_s = 0, step_error = 0, bytes_per_step = 0, messages_per_step = 0;
  AdvisedShares shares;
  double busiest_link = 0, memory_bytes = 0;
  std::vector<std::string> reasons;

  bool is_judged() const { return place_first.has_value(); }
  bool misses_some() const { return reached && runs && runs_reached && *runs_reached < *runs; }
};

// Another number of nodes for a choice.
struct TriedNodes {
  std::string name, where;
  double change = 0;
  bool taken = false;
};

// How the asking ended.
enum class AdviceStatus { kComplete, kBudget, kInterrupted };
constexpr auto words(AdviceStatus) { return WordList<3>{"complete", "budget used", "interrupted"}; }

struct Advice {
  AdviceStatus status = AdviceStatus::kComplete;
  std::string sentence;
  AdvisedTask task;
  AdvisedCluster cluster;
  SimulationError simulation_error;
  std::string obtained = "estimated: simulated step times x steps from real gradients";
  AdvisedModelCost model_cost;
  std::vector<AdvisedChoice> choices;
  std::vector<Refusal> refused;
  std::vector<std::string> not_simulated, not_asked;
  std::vector<TriedNodes> tried_nodes;
  std::string learned_before;
  // The best choice as a job: with the whole cluster, so that a comparison includes all strategies,
  // and with the nodes that it uses alone.
  std::string job, job_to_run;
  std::string task_fingerprint;    // of the job to run (jobs/task_identity.h); not printed
  double error_of_simulation = 0;  // of its time to target, for a simulated run; likewise
  nlohmann::json memory;
  std::optional<nlohmann::json> bandwidth, workers, batch, compression;
};
void visit(RecordVisitor& visitor, Advice& advice);

// A choice and, where it is known, its place and how far it is behind the first.
AdvisedChoice described(const Choice& choice);
// All of them in the order of rank().
std::vector<AdvisedChoice> described(const std::vector<Choice>& ranked);

// The answer in one sentence.
std::string sentence_of(const Advice& advice);
struct AdviceTextOptions {
  std::string written = {};  // a line about files, before the last one
  size_t columns = 100;      // width of the terminal
  bool verbose = false;      // reasons in full
};
// All of it for people. It ends with that sentence.
std::string advice_text(const Advice& advice, const AdviceTextOptions& options = {});

}  // namespace tutti
