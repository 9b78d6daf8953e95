// From a job to all that is decided before it runs: its data, its layers and its plan. The only way
// in for every command.
#pragma once

#include <optional>

#include "data/description.h"
#include "fabric/membership_change.h"
#include "jobs/job.h"

namespace tutti {

struct Resolved {
  Job job;  // with what the planner decided written into its settings
  Data data;
  Architecture architecture;  // the layers that are trained
  Plan plan;
  Job open;  // as it was given: the next plan decides anew what is left open here
};

// Reads the data, validates and plans. Throws ConfigError or DataError that name the job file, the
// line and the key at fault.
Resolved resolve(const Job& job);
// The same with data that was read before: for many jobs on one data set.
Resolved resolve(const Job& job, const Data& data);
// The same for the nodes that are there after a change: the plan of the next epoch. Nodes keep
// their roles; what the planner may choose besides is chosen anew. Throws ConfigError when the
// strategy cannot do with these nodes.
Resolved resolve(const Resolved& former, const MembershipChange& change);

// Returns the layers that a run has trained, without its samples.
Architecture trained_architecture(const Job& job, const DataDescription& data);

// Describes features that are numbers in a file, and says what to do when their scales differ too
// much. Returns "" for other data.
std::string features_text(const Data& data);

// Asks whether classes are meant where the texts of many classes are numbers. Returns "" elsewhere.
std::string classes_text(const Data& data);

// Both as lines that are safe to print, for whoever starts runs.
std::string remarks_on(const Data& data);

// On a virtual cluster: the first worker that needs more memory than its node has. Of processes:
// all workers of this machine together, where they need more than it has.
struct Shortage {
  int64_t worker = 0;   // virtual: which
  int64_t workers = 1;  // how many share what is there
  double needed_bytes = 0, there_bytes = 0;
};
std::optional<Shortage> shortage_of_memory(const Job& job, const Plan& plan);
// Throws ConfigError, with the numbers, when there is a shortage.
void require_memory(const Job& job, const Plan& plan);

// What processes of this machine can have: its memory, or the limit of the container around them.
double machine_memory_bytes();

}  // namespace tutti
