// What a run record shows beside its totals, put together from the reports of the nodes: the
// learning curve, the traffic on the links, and what each node did during one step.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "jobs/node_report.h"
#include "jobs/recorded_run.h"

namespace tutti {

// Empty where a number is not finite: nothing is made up.
std::optional<double> known(double value);

// The strategy's own counters, summed over the nodes.
std::map<std::string, int64_t> counters_of_all(const std::vector<NodeReport>& nodes);

// Adds what nodes report of measurements after the last of these: nodes from elsewhere say only at
// the end what they have measured.
void add_reported(std::vector<EvaluationRow>& evaluations, const std::vector<NodeReport>& nodes);

// The evaluations with the bytes that all nodes had sent by then. `data_s` is the time
// that went before the nodes' clocks started.
std::vector<RecordedEvaluation> learning_curve(const std::vector<EvaluationRow>& evaluations,
                                               const std::vector<NodeReport>& nodes, double data_s);

std::vector<RecordedNode> node_rows(const std::vector<NodeReport>& nodes);

// One for every pair that exchanged something. Large clusters are shown in part.
std::vector<RecordedLink> link_rows(const std::vector<NodeReport>& nodes);

// What each node did from the end of the first step of the first that reports any to the end of its
// second, when everybody is under way; times start at 0.
std::vector<RecordedTimeline> step_timeline(const std::vector<NodeReport>& nodes);

// What the strategy had to say beside.
RecordedExtra extra_of(const std::vector<NodeReport>& nodes);

// Over the updates that all nodes applied.
Freshness freshness_of_all(const std::vector<NodeReport>& nodes);

}  // namespace tutti
