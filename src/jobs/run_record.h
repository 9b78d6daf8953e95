// What is known of a run when it has ended: the contents of run.json and of `--json`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "jobs/job.h"
#include "strategies/recorder.h"

namespace tutti {

inline constexpr int kRunSchema = 1;

// One node's account of its part. Travels from the node to the launcher as JSON.
struct NodeReport {
  int rank = 0;
  double total_s = 0;  // of training, evaluation included
  double compute_s = 0, communicate_s = 0, aggregate_s = 0, wait_s = 0;
  double cpu_s = 0;
  double peak_memory_bytes = 0;
  uint64_t bytes_sent = 0, messages = 0;
  int64_t steps = 0, samples = 0;
  double staleness_mean = 0, staleness_max = 0;
  double test_quality = -1;  // negative: not measured
  std::string parameters_sha256;
  std::vector<EvaluationRow> evaluations;  // of rank 0
};
std::string to_text(const NodeReport& report);
NodeReport node_report(const std::string& text);  // throws DataError

struct RunRecord {
  std::string status;  // done | diverged | peer lost | interrupted | failed
  std::string error;
  int exit_code = 0;
  std::string folder;
  std::string metric;  // accuracy | mse
  bool higher_is_better = true;
  bool virtual_clock = false;
  double startup_s = 0;
  double data_s = 0;  // reading the data: part of the training time on real fabrics
  double joules = 0;
  std::string energy_method;
  std::vector<NodeReport> nodes;  // those that reported
  std::vector<NodeOutcome> outcomes;
};

nlohmann::json to_json(const RunRecord& record, Job& job);
// As text, whatever is in it: a path need not be UTF-8, JSON must.
std::string json_text(const nlohmann::json& value, int indent = -1);

// For people, a few lines.
std::string summary(const RunRecord& record, Job& job);

}  // namespace tutti
