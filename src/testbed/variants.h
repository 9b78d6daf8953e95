// Who takes part in a comparison: variants of the strategies in the catalog, the job's own strategy
// and its [[compare]] entries, each as a job of its own.
#pragma once

#include <string>
#include <vector>

#include "jobs/resolve.h"

namespace tutti {

struct ComparedJob {
  Job job;              // has the name shown in the comparison, and its plan
  Job open;             // the same job before it was planned
  Plan plan;            // empty if it is refused
  std::string refusal;  // why it is not possible here; empty: it is
};

// Whether a node that is too small for it makes an architecture impossible.
enum class Memory { kMustSuffice, kMayBeShort };

// `names` are variants ("ring"), kinds of strategies ("allreduce": all its variants), [[compare]]
// entries, `listed` for all of those, or `all`. Throws ConfigError on a name that there is not, and
// when none of them is possible.
std::vector<ComparedJob> compared_jobs(const Job& job, const std::vector<std::string>& names,
                                       Memory memory = Memory::kMustSuffice);

// The same jobs, each with a setting of its own ("optimizer.lr=0.1") on top, or none (""), planned
// anew. What is not possible so says why in `refusal`.
std::vector<ComparedJob> planned_with(const std::vector<ComparedJob>& compared,
                                      const std::vector<std::string>& settings);

// Whether a strategy of the catalog has this name.
bool is_variant(const std::string& name);

// The name in the catalog of what a job runs, or the kind of its strategy.
std::string variant_name(const Job& job);

}  // namespace tutti
