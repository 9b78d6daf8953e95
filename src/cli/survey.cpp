// `tutti survey`: every architecture on every reference task.
#include "testbed/survey.h"

#include <fmt/format.h>
#include <unistd.h>

#include <iostream>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "core/described_json.h"
#include "core/printable.h"
#include "jobs/run_record.h"

namespace tutti {

int run_survey(const SurveyCommandOptions& options, const std::atomic<bool>& stop) {
  SurveyOptions survey_options;
  survey_options.tasks = options.tasks;
  survey_options.cluster = cluster_of(options.cluster, stop);
  if (!options.strategies.empty()) survey_options.compare.strategies = options.strategies;
  survey_options.compare.seeds = seeds_of(options.seeds);
  survey_options.compare.out = options.out;
  survey_options.compare.progress = progress_style(options.quiet);
  survey_options.compare.columns = columns_of(STDERR_FILENO) - 1;
  std::string folder;
  const Survey result = survey(survey_options, stop, folder);
  if (options.json)
    std::cout << json_text(json_of(result)) << "\n";
  else
    std::cout << printable(survey_tables(result, columns_of(STDOUT_FILENO)) +
                           fmt::format("survey {}/survey.html\n", folder));
  return 0;
}

}  // namespace tutti
