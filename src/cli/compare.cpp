// `tutti compare`: one task under many architectures.
#include "testbed/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "core/described_json.h"
#include "core/error.h"
#include "core/printable.h"
#include "jobs/run_folder.h"
#include "jobs/run_record.h"
#include "jobs/run_status.h"
#include "testbed/bundle.h"
#include "testbed/report.h"
#include "testbed/table.h"

namespace tutti {
namespace {

// One line for what did not end well; nothing of it is an error of the comparison.
std::string failures(const Comparison& result) {
  std::string text;
  for (const ComparedStrategy& row : result.strategies)
    if (!ended_well(row.status))
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", row.name, row.status);
  return text.empty() ? "" : fmt::format("not all ended well: {}\n", text);
}

std::string spent_line(const Comparison& result) {
  return result.spent ? fmt::format("consumed   {}\n", spent_text(*result.spent)) : "";
}

std::optional<Tuning> tuning_of(const CompareCommandOptions& options) {
  if (options.tune.size() > 1)
    throw ConfigError("--tune",
                      "--tune takes one setting; keep what the first search finds (its "
                      "tuned.toml), and search the next with it");
  if (!options.tune.empty()) return parse_tuning(options.tune.front(), options.budget);
  if (options.budget)
    throw ConfigError("--budget",
                      "--budget is of trials for --tune; add e.g. --tune "
                      "optimizer.lr=log:0.003:0.3, or leave it out");
  return std::nullopt;
}

// Writes the settings that were found as entries for the job. Returns a line that says where.
std::string write_tuned(const Comparison& result, const CompareCommandOptions& options,
                        const std::string& folder) {
  std::string command =
      fmt::format("tutti compare {} --tune {}", options.job, options.tune.front());
  if (options.budget) command += fmt::format(" --budget {}", *options.budget);
  if (!options.strategies.empty())
    command += fmt::format(" --strategies {}", fmt::join(options.strategies, ","));
  for (const std::string& set : options.sets) command += fmt::format(" --set '{}'", set);
  if (!options.cluster.empty()) command += fmt::format(" --cluster {}", options.cluster);
  write_file(folder + "/tuned.toml", tuned_entries(result, command));
  return fmt::format("settings   {}/tuned.toml\n", folder);
}

}  // namespace

int run_compare(const CompareCommandOptions& options, const std::atomic<bool>& stop) {
  Job job = job_of(options);
  CompareOptions compare_options;
  if (!options.strategies.empty()) compare_options.strategies = options.strategies;
  compare_options.seeds = seeds_of(options.seeds);
  compare_options.tuning = tuning_of(options);
  compare_options.out = options.out;
  compare_options.jobs = static_cast<size_t>(options.jobs);
  compare_options.share_curves = !options.no_sharing;
  compare_options.strict = options.strict;
  compare_options.progress = progress_style(options.quiet);
  compare_options.columns = columns_of(STDERR_FILENO) - 1;
  std::string folder;
  const Comparison result = compare(job, compare_options, stop, folder);
  std::string page = fmt::format("report     {}/report.html\n", folder);
  try {
    write_file(folder + "/report.html", report_html(result));
  } catch (const DataError& error) {  // the comparison itself is complete
    page = fmt::format("report     not written: {}\n", error.what());
  }
  if (!options.bundle.empty())
    write_bundle(options.bundle, job, result, folder, compare_options.share_curves);
  if (compare_options.tuning) page += write_tuned(result, options, folder);
  if (options.json) {
    std::cout << json_text(json_of(result)) << "\n";
  } else {
    std::cout << comparison_table(result, {.columns = columns_of(STDOUT_FILENO),
                                           .bold = isatty(STDOUT_FILENO) != 0,
                                           .verbose = options.verbose,
                                           .group = options.group})
              << printable(failures(result) + spent_line(result) +
                           fmt::format("comparison {}\n", folder) + page);
    if (!options.bundle.empty())
      std::cout << printable(fmt::format("bundle     {}\n", options.bundle));
  }
  return 0;
}

}  // namespace tutti
