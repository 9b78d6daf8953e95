// `tutti verify`: which claims of a bundle are confirmed here.
#include "testbed/verify.h"

#include <fmt/format.h>
#include <unistd.h>

#include <iostream>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "core/described_json.h"
#include "core/error.h"
#include "core/units.h"
#include "fabric/outcome.h"
#include "jobs/run_record.h"

namespace tutti {
namespace {

int exit_code_of(Verdict verdict) {
  if (verdict == Verdict::kConfirmed) return kExitDone;
  return verdict == Verdict::kNotConfirmed ? kExitNotConfirmed : kExitBadJob;
}

// 0 where no time is given.
double seconds_in(const std::string& max_time) {
  if (max_time.empty()) return 0;
  double seconds = 0;
  try {
    seconds = parse_quantity(max_time, Unit::kSeconds);
  } catch (const ConfigError&) {  // is 0, and said below
  }
  if (seconds > 0) return seconds;
  throw ConfigError("--max-time", fmt::format("--max-time {}: write a time such as \"90 s\" or "
                                              "\"10 min\"",
                                              max_time));
}

}  // namespace

int run_verify(const VerifyCommandOptions& options, const std::atomic<bool>& stop) {
  VerifyOptions verify_options;
  verify_options.file = options.file;
  verify_options.part = options.part;
  const std::vector<uint64_t> seeds = seeds_of(options.seeds);
  if (options.seeds.size() == 1)
    verify_options.first_seeds = seeds.size();
  else
    verify_options.seeds = seeds;
  verify_options.most_s = seconds_in(options.max_time);
  verify_options.data_dir = options.data_dir;
  verify_options.out = options.out;
  verify_options.jobs = static_cast<size_t>(options.jobs);
  verify_options.progress = progress_style(options.quiet);
  verify_options.columns = columns_of(STDERR_FILENO) - 1;
  const Verification result = verify(verify_options, stop);
  if (options.json)
    std::cout << json_text(json_of(result)) << "\n";
  else
    std::cout << verification_text(result, options.all);
  return exit_code_of(result.verdict);
}

}  // namespace tutti
