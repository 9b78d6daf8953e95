// A small comparison to test with.
#pragma once

#include <nlohmann/json.hpp>

#include "testbed/comparison.h"

namespace tutti::testing_support {

inline nlohmann::json small_comparison() {
  return nlohmann::json::parse(R"({
    "schema": 1, "kind": "comparison", "name": "small", "created": "2026-11-16T03:00:00Z",
    "task": {"metric": "accuracy", "target": 0.8, "higher_is_better": true},
    "strategies": [{
      "name": "ring", "status": "done", "workers": 2, "obtained": "simulated", "seeds": [1],
      "reached": 1, "quality": {"best": {"mean": 0.9, "min": 0.9, "max": 0.9, "values": [0.9]}},
      "to_target_s": {"mean": 2, "min": 1, "max": 3, "values": [1, 3]}, "total_s": null,
      "curves": [{"seed": 1, "points": [
        {"step": 1, "samples": 10, "time_s": 0.5, "bytes": 100.0, "loss": 2.0, "quality": 0.5},
        {"step": 2, "samples": 20, "time_s": 1.0, "bytes": 200.0, "loss": null, "quality": null}]}],
      "series": [{"seed": 1, "step": [1, 2], "time_s": [0.5, 1.0], "samples": [10, 20],
                  "loss": [2.0, 1.5]}],
      "timeline": [{"rank": 0, "role": "worker", "intervals": [
        ["compute", 0, 1], ["communicate", 0.5, 1.5], ["wait", 1.5, 2]]}],
      "links": [[0, 1, 100], [1, 0, 50]],
      "nodes": [{"rank": 0, "role": "worker"}, {"rank": 1, "role": "worker"}]}]})");
}

// What a reader makes of it, perhaps after a change.
inline Comparison read_back(const nlohmann::json& comparison) {
  return comparison_of(comparison, "a test");
}

}  // namespace tutti::testing_support
