// `tutti advise`: which architecture for this task on that cluster.
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "core/printable.h"
#include "jobs/progress.h"
#include "jobs/run_folder.h"
#include "jobs/run_record.h"
#include "testbed/advise.h"

namespace tutti {

int run_advise(const AdviseCliOptions& options, const std::atomic<bool>& stop) {
  const bool live = isatty(STDERR_FILENO);
  const Announce announce = [&](const std::string& what) {
    if (!options.quiet) tell(live ? "\r\033[K" + printable(what) : printable(what) + "\n");
  };
  const nlohmann::json advice = advise(job_of({{}, options.job, options.sets, "", ""}),
                                       {.cluster = options.cluster,
                                        .strategies = options.strategies,
                                        .seeds = options.seeds,
                                        .quick = options.quick,
                                        .declared = options.declared},
                                       announce, stop);
  if (live && !options.quiet) tell("\r\033[K");
  if (!options.out.empty()) write_file(options.out, advice["job"].get<std::string>());
  std::cout << (options.json ? json_text(advice) + "\n" : printable(advice_text(advice)));
  if (options.out.empty() || options.json) return 0;
  const auto& best = advice["choices"][0];
  const int64_t workers = best["workers"];
  std::cout << fmt::format(
      "\ntutti compare {0} repeats these times; tutti train {0}{1} that of {2}\n",
      printable(options.out),
      workers < advice["cluster"]["workers"].get<int64_t>()
          ? fmt::format(" --set cluster.workers={}", workers)
          : "",
      best["name"].get<std::string>());
  return 0;
}

}  // namespace tutti
