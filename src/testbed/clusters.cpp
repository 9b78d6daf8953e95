#include "testbed/clusters.h"

#include <fmt/format.h>

#include "core/error.h"
#include "jobs/job.h"
#include "jobs/recipes.h"

namespace tutti {

ClusterConfig load_cluster(const std::string& name_or_file) {
  const Job job = load_job(find_recipe("clusters", name_or_file), {});
  if (job.cluster.fabric != FabricKind::kVirtual)
    throw ConfigError("cluster.fabric",
                      fmt::format("{}: cluster.fabric = \"{}\", but a virtual cluster is needed "
                                  "here; set it to \"virtual\" and describe the nodes",
                                  name_or_file, word_of(job.cluster.fabric)));
  validate_cluster(job.cluster, job.cluster.workers);
  return job.cluster;
}

}  // namespace tutti
