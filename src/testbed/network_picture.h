// Who sent how much to whom, as a picture of bounded size: ranks become groups when there are many.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "jobs/recorded_run.h"

namespace tutti {

// {"nodes": [{"first","last" (ranks),"role","bytes_sent","wait_s",...}],
//  "links": [[from, to, bytes], ...] between positions in `nodes`, "grouped": bool}.
// Up to `most` nodes each has a place of its own. Beyond, servers and other special roles still do
// (unless they are many themselves), and workers are joined in groups of successive ranks; bytes
// within a group are those of its link to itself. `workers` counts when no node is listed.
nlohmann::json network_picture(const std::vector<RecordedNode>& nodes,
                               const std::vector<RecordedLink>& links, int workers, size_t most);

}  // namespace tutti
