// `tutti compare`: one task under many architectures.
#include "testbed/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "core/described_json.h"
#include "core/error.h"
#include "core/printable.h"
#include "fabric/outcome.h"
#include "jobs/run_folder.h"
#include "jobs/run_record.h"
#include "jobs/run_status.h"
#include "testbed/bundle.h"
#include "testbed/bundle_file.h"
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

// Throws ConfigError before anything runs: a bundle takes the place of another bundle, and of
// nothing else.
void require_bundle_place(const CompareCommandOptions& options) {
  const std::string& path = options.bundle;
  if (path.empty()) return;
  if (!options.tune.empty())
    throw ConfigError("--bundle",
                      "--bundle with --tune: a bundle repeats runs, not searches; keep what the "
                      "search finds (its tuned.toml) as entries of the job, and bundle that job");
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (access(folder.empty() ? "." : folder.c_str(), W_OK) != 0)
    throw ConfigError(
        "--bundle", fmt::format("--bundle {}: cannot be written: {}", path, std::strerror(errno)));
  if (!std::filesystem::exists(path)) return;
  try {
    read_bundle_file(path);
  } catch (const Error&) {
    throw ConfigError("--bundle", fmt::format("--bundle {}: exists, and is not a bundle; choose "
                                              "another name, or remove it",
                                              path));
  }
}

}  // namespace

int run_compare(const CompareCommandOptions& options, const std::atomic<bool>& stop) {
  require_bundle_place(options);
  Job job = job_of(options, stop);
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
    page = fmt::format(
        "report     not written: {}; make room, and the same command with --out {} writes it\n",
        error.what(), folder);
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
  return kExitDone;
}

}  // namespace tutti
