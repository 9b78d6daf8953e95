// The update of a stage whose parameters are on a server: its gradient goes there, and the
// parameters of the next step come back.
#pragma once

#include "strategies/pipeline/stage_update.h"

namespace tutti {

// A StageUpdate for a pipeline whose settings ask for servers.
std::unique_ptr<StageUpdate> make_served_update(Context& context, const Placement& placement,
                                                const PipelineConfig& config, size_t stage,
                                                size_t shard, StageModel& model);

// Where the parameters of a stage are; servers come after the workers.
Rank server_of(const Placement& placement, const PipelineConfig& config, size_t stage,
               int64_t workers);

}  // namespace tutti
