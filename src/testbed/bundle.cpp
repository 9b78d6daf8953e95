#include "testbed/bundle.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/described_json.h"
#include "core/error.h"
#include "core/printable.h"
#include "core/shallow_json.h"
#include "jobs/plan_json.h"
#include "jobs/record_schema.h"
#include "jobs/run_folder.h"
#include "jobs/run_record.h"
#include "jobs/run_status.h"
#include "testbed/variants.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr const char* kReadme = "README.txt";
constexpr const char* kTableMember = "compare.json";
constexpr const char* kClaimsMember = "claims.json";
constexpr const char* kJobMember = "job.toml";

constexpr const char* kReadmeText =
    "This is a bundle of Tutti: a comparison of architectures that train one task, with all that\n"
    "is needed to repeat it.\n"
    "\n"
    "  tutti verify FILE             runs it again and says which claims are confirmed\n"
    "  tutti verify FILE --seeds 1   the same for one seed; --part NAME,... for some strategies\n"
    "\n"
    "compare.json   the table with all figures, versions, machine and fingerprints of the data\n"
    "claims.json    what follows from it, in words and in figures with their tolerances\n"
    "job.toml       what was compared: tutti compare job.toml repeats it without any check\n"
    "jobs/          what each run was started with: tutti train repeats one\n"
    "plans/         what was decided before each strategy ran: roles, bytes, memory\n"
    "manifest.json  all of these with their SHA-256\n"
    "\n"
    "The data itself is not in it.\n";

std::string text_of(const json& value) { return json_text(value, 1) + "\n"; }

[[noreturn]] void refuse_bundle(const std::string& path, const std::string& what) {
  throw DataError(fmt::format("{}: {}; get the file again from who made it", path, what));
}

json json_member(const Members& members, const std::string& name, const std::string& path) {
  const auto found = members.find(name);
  if (found == members.end())
    refuse_bundle(path, fmt::format("{} is missing in it", printable(name)));
  json whole = parse_shallow_json(found->second);
  if (whole.is_discarded()) refuse_bundle(path, fmt::format("{} is not JSON", printable(name)));
  if (!whole.is_object())
    refuse_bundle(path, fmt::format("{} is not a JSON object", printable(name)));
  return whole;
}

std::string place_of(const std::string& path, const char* member) {
  return fmt::format("{}: {}", path, member);
}

Claims read_claims(const Members& members, const std::string& path) {
  const json whole = json_member(members, kClaimsMember, path);
  const std::string where = place_of(path, kClaimsMember);
  require_schema(whole, {kClaimsSchema, kClaimsSchema}, where,
                 "ask who made the bundle for a new one");
  try {
    return described_by<Claims>(whole);
  } catch (const Mismatch& mismatch) {
    refuse_bundle(path,
                  fmt::format("{}: \"{}\" {}", kClaimsMember, mismatch.place, mismatch.problem));
  }
}

// Whoever alters a figure and makes the manifest anew has more to change than that one.
void require_agreement(const Bundle& bundle, const Members& members, const std::string& path) {
  const auto contradiction = [&](const std::string& what) {
    refuse_bundle(path, fmt::format("it contradicts itself: {}", what));
  };
  if (const std::string text = contradiction_in(bundle.comparison); !text.empty())
    contradiction(fmt::format("in {} {}", kTableMember, printable(text)));
  const auto job = members.find(kJobMember);
  if (job == members.end() || job->second != bundle.comparison.job)
    contradiction(fmt::format("{} is not the job in {}", kJobMember, kTableMember));
  const Claims made = claims_of(bundle.comparison);
  if (made.claims.size() != bundle.claims.claims.size())
    contradiction(fmt::format("{} has {} claims, but {} follow from {}", kClaimsMember,
                              bundle.claims.claims.size(), made.claims.size(), kTableMember));
  for (size_t i = 0; i < made.claims.size(); ++i)
    if (json_of(made.claims[i]) != json_of(bundle.claims.claims[i]))
      contradiction(fmt::format("{} says \"{}\", but \"{}\" follows from {}", kClaimsMember,
                                printable(bundle.claims.claims[i].text),
                                printable(made.claims[i].text), kTableMember));
}

void require_runs(const Comparison& comparison) {
  for (const ComparedStrategy& row : comparison.strategies)
    for (size_t i = 0; i < row.statuses.size(); ++i)
      if (!came_to_an_end(row.statuses[i]))
        throw DataError(
            fmt::format("--bundle: {} {}: {}; the same command tries it again, or "
                        "leave it out by --strategies",
                        run_name(row.name, row.seeds[i]), row.statuses[i], row.error));
}

// The resolved job says how many workers there are. One that left it open and is of a single worker
// has compared the others with more, which its readers would not.
void require_workers(const Job& job) {
  if (job.cluster.workers == 1 && !job.places.contains("cluster.workers"))
    throw ConfigError("cluster.workers",
                      "--bundle: the job leaves open how many workers there are; say it by "
                      "--set cluster.workers=4, for example");
}

}  // namespace

std::string run_name(const std::string& strategy, uint64_t seed) {
  return fmt::format("{}-seed{}", strategy, seed);
}

std::map<std::string, json> plans_of(const Job& job, const std::vector<std::string>& strategies) {
  std::map<std::string, json> plans;
  for (const ComparedJob& compared : compared_jobs(job, strategies))
    if (compared.refusal.empty()) plans[compared.job.name] = to_json(compared.plan);
  return plans;
}

void write_bundle(const std::string& path, const Job& job, const Comparison& made,
                  const std::string& folder, bool share_curves) {
  require_workers(job);
  require_runs(made);
  const json table = json_of(made);
  // As its readers will see it.
  const Comparison comparison = comparison_of(table, kTableMember);
  if (const std::string text = contradiction_in(comparison); !text.empty())
    throw DataError(fmt::format("--bundle: {}, so nobody could verify it", text));
  BundleFile file;
  file.manifest.name = comparison.name;
  file.manifest.versions = comparison.versions;
  file.manifest.machine = comparison.machine;
  file.manifest.share_curves = share_curves;
  Members& members = file.members;
  members[kReadme] = kReadmeText;
  members[kTableMember] = json_text(table) + "\n";
  members[kClaimsMember] = text_of(json_of(claims_of(comparison)));
  members[kJobMember] = comparison.job;
  std::vector<std::string> names;
  for (const ComparedStrategy& row : comparison.strategies) {
    names.push_back(row.name);
    for (const uint64_t seed : row.seeds) {
      const std::string run = fmt::format("jobs/{}.toml", run_name(row.name, seed));
      members[run] = read_file(fmt::format("{}/{}", folder, run));
    }
  }
  for (const auto& [name, plan] : plans_of(job, names))
    if (std::find(names.begin(), names.end(), name) != names.end())
      members[fmt::format("plans/{}.json", name)] = text_of(plan);
  write_bundle_file(path, std::move(file));
}

Bundle read_bundle(const std::string& path) {
  BundleFile file = read_bundle_file(path);
  Bundle bundle;
  bundle.manifest = std::move(file.manifest);
  const Members& members = file.members;
  bundle.comparison =
      comparison_of(json_member(members, kTableMember, path), place_of(path, kTableMember));
  bundle.claims = read_claims(members, path);
  try {
    require_agreement(bundle, members, path);
  } catch (const ConfigError& error) {  // of its job
    refuse_bundle(path, error.what());
  }
  const std::vector<uint64_t>& seeds = bundle.comparison.strategies.front().seeds;
  for (const ComparedStrategy& row : bundle.comparison.strategies) {
    if (row.seeds.empty() || row.seeds != seeds)
      refuse_bundle(path, fmt::format("{}: the seeds of its strategies differ", kTableMember));
    bundle.plans[row.name] = json_member(members, fmt::format("plans/{}.json", row.name), path);
    for (const uint64_t seed : row.seeds) {
      const std::string run = run_name(row.name, seed);
      const auto job = members.find(fmt::format("jobs/{}.toml", run));
      if (job == members.end())
        refuse_bundle(path, fmt::format("jobs/{}.toml is missing", printable(run)));
      bundle.jobs[run] = job->second;
    }
  }
  return bundle;
}

}  // namespace tutti
