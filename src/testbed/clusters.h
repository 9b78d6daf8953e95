// The clusters that questions are asked about: files with a [cluster] table, or recipes by name.
#pragma once

#include <string>

#include "fabric/cluster.h"

namespace tutti {

// Throws ConfigError when there is no such cluster, when it is not valid, and when it is not a
// virtual one.
ClusterConfig load_cluster(const std::string& name_or_file);

}  // namespace tutti
