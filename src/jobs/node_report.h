// One node's account of its part in a run. Travels from the node to the launcher as JSON, as
// `visit` describes it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/described.h"
#include "fabric/stopwatch.h"
#include "strategies/recorder.h"

namespace tutti {

struct NodeReport {
  int rank = 0;
  std::string role;
  double total_s = 0;  // of training, evaluation included
  double compute_s = 0, communicate_s = 0, aggregate_s = 0, wait_s = 0, other_s = 0;
  double cpu_s = 0;
  double joules = -1;  // of this machine, measured; negative: nothing measures it
  std::string energy_method;
  double peak_memory_bytes = 0;
  double reference_flops = 0;  // speed: of the reference kernel, or declared by the cluster
  uint64_t bytes_sent = 0, messages = 0;
  int64_t steps = 0;
  int64_t samples = 0;      // of all workers, as far as this node knows
  int64_t own_samples = 0;  // of this node
  // One entry for each step that all workers take together: the loss of this node's share of the
  // batch, and the number of samples in that share.
  std::vector<double> losses;
  std::vector<int64_t> shares;
  Freshness freshness;
  std::map<std::string, int64_t> counters;  // of the strategy's own events
  double test_quality = -1;                 // negative: not measured
  std::string parameters_sha256;
  std::vector<EvaluationRow> evaluations;            // of rank 0 and of servers
  std::vector<std::pair<int, uint64_t>> links;       // bytes sent, to each rank that got any
  std::vector<std::pair<double, uint64_t>> traffic;  // bytes sent by then; a few points
  std::vector<double> step_ends;                     // the first ones, on the fabric's clock
  std::vector<Interval> timeline;                    // of those steps, on the same clock
  Extra extra;                                       // of rank 0
};

void visit(RecordVisitor& visitor, NodeReport& report);
void visit(RecordVisitor& visitor, Freshness& freshness);
void visit(RecordVisitor& visitor, Extra& extra);
void visit(RecordVisitor& visitor, Extra::Table& table);
void visit_value(RecordVisitor& visitor, Extra::Series& series);
void visit_value(RecordVisitor& visitor, EvaluationRow& row);
void visit_value(RecordVisitor& visitor, Interval& interval);

std::string to_text(const NodeReport& report);
NodeReport node_report(const std::string& text);  // throws DataError

const char* name_of(Phase phase);

}  // namespace tutti
