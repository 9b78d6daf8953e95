#include "jobs/briefing.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "data/fingerprint.h"
#include "jobs/plan_json.h"
#include "jobs/run_record.h"
#include "jobs/versions.h"

namespace tutti {
namespace {

using nlohmann::json;

}  // namespace

std::string make_briefing(const Resolved& resolved) {
  return json_text({{"version", library_versions().tutti},
                    {"job", resolved_toml(resolved.job)},
                    {"plan", json_text(to_json(resolved.plan))},
                    {"data", fingerprint(resolved.data)}});
}

Briefing read_briefing(const std::string& text, const std::string& data_dir) {
  std::string version, job, plan, data;
  try {
    const json object = json::parse(text);
    version = object.at("version");
    job = object.at("job");
    plan = object.at("plan");
    data = object.at("data");
  } catch (const json::exception&) {
    throw DataError("the launcher sent no job that can be read; is it a tutti of this version?");
  }
  const std::string own = library_versions().tutti;
  if (version != own)
    throw ConfigError("", fmt::format("the launcher is tutti {}, this is tutti {}; use the same "
                                      "version on every machine",
                                      version, own));
  Briefing briefing{parse_job(job, "the launcher's job"), data, plan};
  if (!data_dir.empty()) move_to(briefing.job.task.data, data_dir);
  return briefing;
}

}  // namespace tutti
