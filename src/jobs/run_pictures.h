// What a run record shows beside its totals, put together from the reports of the nodes: the
// learning curve, the traffic on the links, and what each node did during one step.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "jobs/node_report.h"

namespace tutti {

// JSON has no NaN: what is not a finite number is null, never a made-up value.
nlohmann::json number(double value);

// Who wrote down the evaluations: rank 0, or if it is lost a server that did too.
const NodeReport* scribe_of(const std::vector<NodeReport>& nodes);

// The strategy's own counters, summed over the nodes.
nlohmann::json counters_of_all(const std::vector<NodeReport>& nodes);

// The evaluations with the bytes that all nodes had sent by then. `data_s` is the time
// that went before the nodes' clocks started.
nlohmann::json learning_curve(const std::vector<NodeReport>& nodes, double data_s);

nlohmann::json node_rows(const std::vector<NodeReport>& nodes);

// [from, to, bytes] for every pair that exchanged something. Large clusters are shown in part.
nlohmann::json link_rows(const std::vector<NodeReport>& nodes);

// What each node did from the end of rank 0's first step to the end of its second, when everybody
// is under way; times start at 0.
nlohmann::json step_timeline(const std::vector<NodeReport>& nodes);

// What the strategy had to say beside: {"series": {name: [[step, value], ...]}, "figures": {...}}.
nlohmann::json extra_of(const std::vector<NodeReport>& nodes);

// Over the updates that all nodes applied.
Freshness freshness_of_all(const std::vector<NodeReport>& nodes);

}  // namespace tutti
