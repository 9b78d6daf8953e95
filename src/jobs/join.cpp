#include "jobs/join.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.h"
#include "core/printable.h"
#include "data/fingerprint.h"
#include "fabric/outcome.h"
#include "fabric/process/process_fabric.h"
#include "jobs/briefing.h"
#include "jobs/participant.h"
#include "jobs/plan_json.h"
#include "jobs/plugins.h"
#include "jobs/progress.h"
#include "jobs/run_record.h"

namespace tutti {
namespace {

// What a node elsewhere holds in place of its launcher's memory.
struct Part {
  Briefing briefing;
  Resolved resolved;
  std::optional<Stage> stage;
};

std::unique_ptr<Part> prepare_part(const std::string& text, const std::string& data_dir) {
  Briefing briefing = read_briefing(text, data_dir);
  Resolved resolved = resolve(briefing.job);
  if (fingerprint(resolved.data) != briefing.data_fingerprint)
    throw DataError(
        "the data here is not the launcher's: other samples, sizes or splits; give the same files, "
        "with --data-dir if they lie elsewhere");
  if (json_text(to_json(resolved.plan)) != briefing.plan)
    throw ConfigError("",
                      "this node would plan the job in another way than its launcher; use the "
                      "same build of tutti on every machine");
  auto part = std::make_unique<Part>(Part{std::move(briefing), std::move(resolved), {}});
  const int threads = static_cast<int>(most_threads(part->resolved.job.cluster));
  part->stage.emplace(Stage{.resolved = part->resolved,
                            .models = load_models(part->resolved.architecture, threads),
                            .folder = "",
                            .progress = ProgressStyle::kNone});
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
      tell(fmt::format("tutti: {}\n", printable(outcome.error)));
    else if (!settings.quiet)
      tell(fmt::format("tutti: rank {} is done; the launcher keeps the record\n", rank));
  };
  join_process_fabric({.address = settings.address, .token = settings.token}, begin, leave, stop);
}

}  // namespace tutti
