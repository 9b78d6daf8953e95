// `tutti advise`: which architecture for this task on that cluster.
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "jobs/progress.h"
#include "jobs/run_record.h"
#include "testbed/advise.h"

namespace tutti {

int run_advise(const AdviseCliOptions& options, const std::atomic<bool>& stop) {
  const bool live = isatty(STDERR_FILENO);
  const Announce announce = [&](const std::string& what) {
    if (!options.quiet) tell(live ? "\r\033[K" + what : what + "\n");
  };
  const nlohmann::json advice = advise(load_job(job_file(options.job), options.sets),
                                       {.cluster = options.cluster,
                                        .strategies = options.strategies,
                                        .seeds = options.seeds,
                                        .quick = options.quick,
                                        .declared = options.declared},
                                       announce, stop);
  if (live && !options.quiet) tell("\r\033[K");
  std::cout << (options.json ? json_text(advice) + "\n" : advice_text(advice));
  return 0;
}

}  // namespace tutti
