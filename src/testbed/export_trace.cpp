// Chrome's trace event format: complete events ("ph":"X") in microseconds. Events of one thread
// must nest, so that intervals which overlap only in part are given threads of their own.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "testbed/exports.h"

namespace tutti {
namespace {

using nlohmann::json;

struct TraceInterval {
  std::string kind;
  int64_t begin_ns, end_ns;
};

// The lowest lane in which the interval nests with all that are still open. `lanes` holds the ends
// of the open intervals of each, outermost first.
size_t lane_for(const TraceInterval& interval, std::vector<std::vector<int64_t>>& lanes) {
  for (size_t i = 0;; ++i) {
    if (i == lanes.size()) lanes.emplace_back();
    std::vector<int64_t>& open = lanes[i];
    while (!open.empty() && open.back() <= interval.begin_ns) open.pop_back();
    if (!open.empty() && open.back() < interval.end_ns) continue;
    open.push_back(interval.end_ns);
    return i;
  }
}

std::vector<TraceInterval> intervals_of(const RecordedTimeline& row) {
  const auto nanoseconds = [](double seconds) {
    return static_cast<int64_t>(std::llround(seconds * 1e9));
  };
  std::vector<TraceInterval> intervals;
  for (const RecordedInterval& each : row.intervals)
    intervals.push_back({each.kind, nanoseconds(each.from_s), nanoseconds(each.to_s)});
  std::stable_sort(
      intervals.begin(), intervals.end(), [](const TraceInterval& a, const TraceInterval& b) {
        return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
      });
  return intervals;
}

json metadata(const char* what, int64_t process, int64_t thread, const std::string& name) {
  return {
      {"name", what}, {"ph", "M"}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

void add_node(const RecordedTimeline& row, int64_t process, int64_t& next_thread, json& events) {
  const int64_t rank = row.rank;
  const std::string role = row.role.empty() ? "worker" : row.role;
  std::vector<std::vector<int64_t>> lanes;
  std::vector<int64_t> threads;
  for (const TraceInterval& interval : intervals_of(row)) {
    const size_t lane = lane_for(interval, lanes);
    if (lane == threads.size()) {
      threads.push_back(next_thread++);
      const std::string name = "rank " + std::to_string(rank) + " " + role;
      events.push_back(metadata("thread_name", process, threads[lane],
                                lane == 0 ? name : name + ", overlapped " + std::to_string(lane)));
    }
    events.push_back({{"name", interval.kind},
                      {"cat", "step"},
                      {"ph", "X"},
                      {"ts", static_cast<double>(interval.begin_ns) / 1000},
                      {"dur", static_cast<double>(interval.end_ns - interval.begin_ns) / 1000},
                      {"pid", process},
                      {"tid", threads[lane]},
                      {"args", {{"rank", rank}, {"role", role}}}});
  }
}

}  // namespace

std::string chrome_trace(const Comparison& comparison) {
  json events = json::array();
  int64_t process = 0;
  for (const ComparedStrategy& strategy : comparison.strategies) {
    ++process;
    const std::string how = strategy.obtained.empty() ? "" : " (" + strategy.obtained + ")";
    events.push_back(metadata("process_name", process, 0, strategy.name + how));
    int64_t next_thread = 1;
    for (const RecordedTimeline& row : strategy.timeline)
      add_node(row, process, next_thread, events);
  }
  return json{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}}.dump(
      -1, ' ', false, json::error_handler_t::replace);
}

}  // namespace tutti
