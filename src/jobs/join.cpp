#include "jobs/join.h"

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "core/error.h"
#include "data/fingerprint.h"
#include "fabric/outcome.h"
#include "fabric/process/process_fabric.h"
#include "jobs/briefing.h"
#include "jobs/participant.h"
#include "jobs/plugins.h"
#include "jobs/predict_cost.h"
#include "jobs/progress.h"

namespace tutti {
namespace {

// What a node elsewhere holds in place of its launcher's memory.
struct Part {
  Briefing briefing;
  Prepared prepared;
  std::optional<Stage> stage;
};

std::unique_ptr<Part> prepare_part(const std::string& text, const std::string& data_dir) {
  Briefing briefing = read_briefing(text, data_dir);
  Prepared prepared = prepare(briefing.job);
  if (fingerprint(prepared.data) != briefing.data_fingerprint)
    throw DataError(
        "the data here is not the launcher's: other samples, sizes or splits; give the same files, "
        "with --data-dir if they lie elsewhere");
  auto part = std::make_unique<Part>(Part{std::move(briefing), std::move(prepared), {}});
  const Job& job = part->briefing.job;
  part->stage.emplace(Stage{
      .job = job,
      .data = part->prepared.data,
      .architecture = part->prepared.architecture,
      .make_model =
          load_models(part->prepared.architecture, static_cast<int>(most_threads(job.cluster))),
      .folder = "",
      .progress = ProgressStyle::kNone,
      .total_steps = predicted_steps(job, part->prepared.data),
      .predicted_memory_bytes = predicted_memory_bytes(job, part->prepared.architecture)});
  return part;
}

}  // namespace

void join_run(const JoinSettings& settings, const std::atomic<bool>& stop) {
  Rank rank = kAnyRank;
  const auto begin = [&](const Joined& joined) -> Fabric::Body {
    rank = joined.rank;
    if (!settings.quiet)
      tell(
          fmt::format("tutti: joined {} as rank {} of {}\n", settings.address, rank, joined.nodes));
    std::shared_ptr<Part> part = prepare_part(joined.briefing, settings.data_dir);
    return [part](Node& node) { return participate(*part->stage, node); };
  };
  const auto leave = [&](const NodeOutcome& outcome) {
    if (outcome.exit_code != kExitDone)
      tell(fmt::format("tutti: {}\n", outcome.error));
    else if (!settings.quiet)
      tell(fmt::format("tutti: rank {} is done; the launcher keeps the record\n", rank));
  };
  join_process_fabric({.address = settings.address, .token = settings.token}, begin, leave, stop);
}

}  // namespace tutti
