// The architectures that are asked about, each as a job of its own on a given cluster.
#pragma once

#include <string>
#include <vector>

#include "jobs/job.h"

namespace tutti {

// A job file with what the command line overrides in it.
struct JobSource {
  std::string path;
  std::vector<std::string> sets;
};

struct Candidate {
  std::string name;  // of the variant
  Job job;
};

// One per variant of the catalog, or per name in `only`, on `cluster`; a strategy first makes of
// the cluster what it can use. Throws ConfigError for a name that there is not, with the nearest.
std::vector<Candidate> make_candidates(const JobSource& source, const ClusterConfig& cluster,
                                       const std::vector<std::string>& only);

// The cluster in a file, or one of those that come with the program, by name.
ClusterConfig load_cluster(const std::string& name_or_file);

}  // namespace tutti
