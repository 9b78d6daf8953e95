// A bundle: all that a reader needs to repeat a comparison and to say which of its claims hold.
//
//   README.txt           what this is, and the command that verifies it
//   compare.json         the table, with versions, machine and fingerprints of the data
//   claims.json          what follows from it, in words and figures (testbed/claims.h)
//   job.toml             what was compared: every setting
//   jobs/NAME-seedK.toml what each run was started with
//   plans/NAME.json      what was decided before each strategy ran
//   manifest.json        all of these with their SHA-256 (testbed/bundle_file.h)
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "jobs/job.h"
#include "testbed/bundle_file.h"
#include "testbed/claims.h"

namespace tutti {

struct Bundle {
  BundleManifest manifest;
  Comparison comparison;
  Claims claims;
  std::map<std::string, std::string> jobs;      // by run: "ring-seed1"
  std::map<std::string, nlohmann::json> plans;  // by strategy
};

// `folder` is that of the comparison, which `tutti compare` has just completed from `job`. Throws
// DataError when runs failed or the file cannot be written.
void write_bundle(const std::string& path, const Job& job, const Comparison& comparison,
                  const std::string& folder, bool share_curves);

// Throws DataError, naming the file, what is wrong in it and what to do, also where members do not
// belong together.
Bundle read_bundle(const std::string& path);

// The plans of these strategies of `job`, by name.
std::map<std::string, nlohmann::json> plans_of(const Job& job,
                                               const std::vector<std::string>& strategies);

std::string run_name(const std::string& strategy, uint64_t seed);

}  // namespace tutti
