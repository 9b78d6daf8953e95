// Run folders made by hand, with figures that a test knows.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "jobs/run_folder.h"
#include "jobs/run_record.h"
#include "tests/support/jobs.h"

namespace tutti::testing_support {

struct MadeRun {
  Settings settings = {};
  uint64_t seed = 1;
  double step_s = 1;                   // seconds per step
  std::vector<double> qualities = {};  // one per 10 steps of 100 samples each
  std::vector<double> losses = {};     // per step; empty: falls to the end
  RunStatus status = RunStatus::kDone;
  uint64_t bytes = 1000;     // of rank 0; rank 1 sends half
  double test_quality = -1;  // at the end; negative: not measured
};

inline std::string make_run(const std::string& folder, const MadeRun& made) {
  Job job = load_job("", Settings{"cluster.fabric=virtual", "task.target=0.8"} + made.settings);
  job.task.seed = made.seed;
  const size_t steps = 10 * made.qualities.size();
  RunRecord record;
  record.status = made.status;
  record.error = made.status == RunStatus::kDone ? "" : "the loss is nan at step 3";
  record.metric = "accuracy";
  record.virtual_clock = job.cluster.fabric == FabricKind::kVirtual;
  record.joules = 7;
  record.energy_method = "simulated";
  record.co2e = {3, "by hand"};
  record.kwh = 7 / 3.6e6;
  record.cost = {{0.5, "by hand"}, 0.2};
  record.folder = folder;
  for (int rank = 0; rank < 2; ++rank) {
    NodeReport node;
    node.rank = rank;
    node.role = "worker";
    node.total_s = made.step_s * static_cast<double>(steps);
    node.compute_s = node.total_s / 2;
    node.wait_s = node.total_s / 4;
    node.reference_flops = 10e9;  // half of the reference
    node.bytes_sent = made.bytes / (rank == 0 ? 1 : 2);
    node.steps = static_cast<int64_t>(steps);
    node.samples = 100 * node.steps;
    if (rank == 0) node.test_quality = made.test_quality;
    for (size_t i = 0; rank == 0 && i < made.qualities.size(); ++i) {
      const auto step = static_cast<int64_t>(10 * (i + 1));
      const auto seconds = made.step_s * static_cast<double>(step);
      record.evaluations.push_back(
          {step, seconds, static_cast<double>(i + 1), 100 * step, 0.5, made.qualities[i]});
    }
    record.nodes.push_back(node);
  }
  std::filesystem::create_directories(folder);
  write_file(folder + "/job.toml", resolved_toml(job));
  write_file(folder + "/run.json", json_text(to_json(record, job), 2));
  std::string series = "step,time_s,loss,rate,samples\n";
  for (size_t i = 0; i < steps; ++i)
    series += fmt::format("{},{},{},0.1,{}\n", i + 1, made.step_s * static_cast<double>(i + 1),
                          made.losses.empty() ? 1.0 / static_cast<double>(i + 1) : made.losses[i],
                          100 * (i + 1));
  write_file(folder + "/series.csv", series);
  return folder;
}

}  // namespace tutti::testing_support
