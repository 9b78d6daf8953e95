// The program: parses the command line, runs a command, turns errors into messages and exit codes.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command_line.h"
#include "cli/process_setup.h"
#include "cli/usage.h"
#include "core/error.h"
#include "core/printable.h"
#include "core/whole_file.h"
#include "fabric/outcome.h"
#include "jobs/plan_json.h"
#include "jobs/progress.h"
#include "jobs/run_record.h"

namespace tutti {
namespace {

std::atomic<bool> stop_requested{false};

bool json_wanted = false;  // whichever command it is: errors follow it too

void add_job(CLI::App* app, JobOptions& options) {
  app->add_option("JOB", options.job, "Job file, see docs/job_reference.md")->required();
  app->add_option("--set", options.sets, "Override a setting, e.g. --set cluster.workers=8")
      ->take_all()
      ->allow_extra_args(false);
  app->add_option("--cluster", options.cluster,
                  "Run on this cluster: a file with a [cluster] table, or a name below "
                  "recipes/clusters, or `here`: this machine, measured");
  add_common(app, options);
}

int report(const std::exception& error, int code) {
  tell(fmt::format("tutti: {}\n", printable(error.what())));
  if (json_wanted) {
    nlohmann::json object = {{"error", error.what()}, {"exit_code", code}};
    if (const auto* config = dynamic_cast<const ConfigError*>(&error))
      object["key"] = config->key();
    std::cout << json_text(object) << "\n";
  }
  return code;
}

// What could not be printed is an error, unless its reader has just seen enough.
int finish_output(int code) {
  std::cout.flush();
  if (std::cout && std::fflush(stdout) == 0 && !std::ferror(stdout)) return code;
  const int reason = errno;
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  if (poll(&output, 1, 0) == 1 && (output.revents & POLLERR)) return code;
  tell(fmt::format("tutti: standard output cannot be written: {}\n", std::strerror(reason)));
  return code == kExitDone ? kExitInternal : code;
}

constexpr const char* kExitCodes =
    "Exit codes: 0 done (a missed target is said, not an error), 1 internal error or a full "
    "disk,\n2 bad job or usage, 3 diverged, 4 peer lost, 5 not confirmed, 130 interrupted.";

Command add_train(CLI::App& app) {
  const auto options = std::make_shared<TrainOptions>();
  auto* command = app.add_subcommand("train", "Train a job and keep its record");
  add_job(command, *options);
  command->add_option("--out", options->out, "Folder of the run (default: a new one below runs/)");
  command->add_option("--progress", options->progress, "live, lines or json (one object a line)")
      ->check(CLI::IsMember({"live", "lines", "json"}));
  command->footer("Example: tutti train recipes/fashion-lenet.toml --set cluster.workers=2");
  return {command, [=] { return run_train(*options, stop_requested); }, true};
}

Command add_compare(CLI::App& app) {
  const auto options = std::make_shared<CompareCommandOptions>();
  auto* command = app.add_subcommand("compare", "Run a job under many architectures");
  add_job(command, *options);
  command
      ->add_option("--strategies", options->strategies,
                   "Which, e.g. ring,tree,solo; listed: the [[compare]] entries (default: all)")
      ->delimiter(',');
  command->add_option("--seeds", options->seeds, "How many seeds, or which, e.g. 5 or 3,7")
      ->delimiter(',');
  command->add_option("--out", options->out, "Folder, new or to go on with (default: a new one)");
  command->add_option("--jobs", options->jobs, "Virtual runs at once (default: as many as cores)")
      ->check(CLI::Range(1, 4096));
  command->add_option("--tune", options->tune,
                      "First find each one's best setting: KEY=log:A:B, lin:A:B or a list A,B,C");
  command->add_option("--budget", options->budget, "Trials of each for --tune (default: 6)");
  std::vector<std::string> parts;
  for (const TaxonomyPart& part : taxonomy_parts()) parts.emplace_back(part.name);
  command->add_option("--group", options->group, "Group the table by a part of the taxonomy")
      ->check(CLI::IsMember(parts));
  command->add_flag("--no-sharing", options->no_sharing,
                    "Compute gradients for every run, also where strategies are equal");
  command->add_flag("--strict", options->strict,
                    "Refuse damaged run folders instead of running them again");
  command->add_flag("--verbose", options->verbose,
                    "Say in full what is not possible here, and define the figures");
  command->add_option("--bundle", options->bundle,
                      "Also write all that others need to verify it: one .tar.gz file");
  command->footer(
      "Examples:\n"
      "  tutti compare recipes/fashion-lenet-virtual.toml --seeds 5 --bundle fashion.tar.gz\n"
      "  tutti compare recipes/stragglers.toml --strategies ring,butterfly,solo --out compare/s\n"
      "  tutti compare recipes/tasks/image-fashion.toml --cluster two-racks\n"
      "  tutti compare recipes/demo.toml --seeds 5 --tune optimizer.lr=log:0.003:0.3 --budget 6\n"
      "The same command on the same --out goes on where it ended. See docs/compare.md.");
  return {command, [=] { return run_compare(*options, stop_requested); }, true};
}

Command add_check(CLI::App& app) {
  const auto options = std::make_shared<CheckOptions>();
  auto* command = app.add_subcommand("check", "Check a job and say what it will take");
  add_job(command, *options);
  auto* diff =
      command->add_option("--diff", options->before,
                          "Say what changes from this job to JOB in roles, bytes, memory and risk");
  command
      ->add_option("--without", options->without,
                   "Check the next plan, once these ranks have left, and say what changes")
      ->delimiter(',')
      ->check(CLI::Range(0, 1000000))
      ->excludes(diff);
  command->add_option("--with", options->with, "The same once so many more workers have come")
      ->check(CLI::Range(1, 65535))
      ->excludes(diff);
  command->footer(
      "Examples:\n"
      "  tutti check recipes/fashion-lenet.toml --set strategy.topology=tree\n"
      "  tutti check --diff recipes/fashion-lenet-virtual.toml recipes/parameter-server.toml\n"
      "  tutti check recipes/parameter-server.toml --without 1,3");
  return {command, [=] { return run_check(*options); }};
}

Command add_join(CLI::App& app) {
  const auto options = std::make_shared<JoinCommand>();
  auto* command = app.add_subcommand("join", "Take part in a run that was launched elsewhere");
  command->add_option("HOST:PORT", options->address, "Where the launcher waits")->required();
  command->add_option("--token", options->token,
                      "The token that the launcher printed (default: $TUTTI_TOKEN)");
  command->add_option("--data-dir", options->data_dir,
                      "Folder of the data files here (default: the launcher's path)");
  command->add_flag("-q,--quiet", options->quiet, "Print no progress");
  command->footer("Example: tutti join 192.168.1.10:4000 --token 0123...");
  return {command, [=] { return run_join(*options, stop_requested); }, true};
}

Command add_predict(CLI::App& app) {
  const auto options = std::make_shared<PredictOptions>();
  auto* command = app.add_subcommand("predict", "Predict with the parameters of a run");
  command->add_option("RUN", options->run, "Folder of a finished run")->required();
  command->add_option("--data", options->data,
                      "File in the format of the run's data (default: its test samples)");
  command->add_option("--labels", options->labels, "IDX file of labels, to measure quality");
  command->add_option("-o,--output", options->output, "Write the CSV here");
  add_common(command, *options);
  command->footer("Example: tutti predict runs/iris --data flowers.csv -o predicted.csv");
  return {command, [=] { return run_predict(*options); }};
}

Command add_show(CLI::App& app) {
  const auto options = std::make_shared<ShowOptions>();
  auto* command = app.add_subcommand("show", "Show finished runs side by side");
  command->add_option("RUN", options->runs, "Folders of finished runs")->required();
  add_common(command, *options);
  command->footer("Example: tutti show runs/*");
  return {command, [=] { return run_show(*options); }};
}

Command add_report(CLI::App& app) {
  const auto options = std::make_shared<ReportOptions>();
  auto* command = app.add_subcommand("report", "Make the page of a comparison, and exports");
  command->add_option("PATH", options->paths, "Folder of a comparison, its compare.json, or runs")
      ->required();
  command->add_option("--out", options->out,
                      "The page (default: report.html beside the comparison)");
  command->add_option("--tensorboard", options->tensorboard, "Write TensorBoard event files here");
  command->add_option("--trace", options->trace, "Write a trace for Perfetto or chrome://tracing");
  command->add_option("--csv", options->csv, "Write a row per strategy here, and curves beside it");
  add_common(command, *options);
  command->footer("Example: tutti report runs/fashion-compare --trace trace.json");
  return {command, [=] { return run_report(*options); }};
}

Command add_list(CLI::App& app) {
  const auto options = std::make_shared<CommonOptions>();
  const auto kind = std::make_shared<std::string>();
  auto* command = app.add_subcommand("list", "List what there is to choose from");
  command
      ->add_option("KIND", *kind,
                   "strategies, topologies, optimizers, models, data, fabrics, tasks, settings or "
                   "records")
      ->required();
  add_common(command, *options);
  command->footer("Example: tutti list strategies");
  return {command, [=] { return run_list(*kind, *options); }};
}

Command add_doctor(CLI::App& app) {
  const auto options = std::make_shared<DoctorOptions>();
  auto* command = app.add_subcommand("doctor", "Say what this machine offers");
  command
      ->add_option("--write-cluster", options->write_cluster,
                   "Also measure it, and write it as a cluster file")
      ->check(empty_name);
  add_common(command, *options);
  command->footer("Examples: tutti doctor\n          tutti doctor --write-cluster this.toml");
  return {command, [=] { return run_doctor(*options, stop_requested); }, true};
}

Command add_footprint(CLI::App& app) {
  const auto options = std::make_shared<FootprintOptions>();
  auto* command = app.add_subcommand("footprint", "Energy, CO2e and cost of a described training");
  TrainingDescription& training = options->training;
  command->add_option("--watts", training.watts, "Power of one machine while it trains")
      ->required();
  command->add_option("--hours", training.hours, "Time of one training")->required();
  command->add_option("--machines", training.machines, "That train together (default: 1)");
  command->add_option("--trainings", training.trainings, "Made in all (default: 1)");
  command->add_option("--pue", training.pue,
                      "Power of the data centre for each watt of its machines (default: 1)");
  command->add_option("--country", options->country, "Whose grid, e.g. USA (default: world)");
  command->add_option("--intensity", options->intensity,
                      "CO2e of a kWh instead of the country's, e.g. \"0.954 lb/kWh\"");
  command->add_option("--price", options->price, "Of a machine for an hour (default: 0.1)");
  command->add_option("--spot-price", training.spot_price, "The same where it may be taken away");
  command->add_option("--currency", options->currency, "Of the prices (default: EUR)");
  add_common(command, *options);
  command->footer(
      "Examples: tutti footprint --watts 1415.78 --hours 12 --pue 1.58 --country USA\n"
      "          tutti footprint --watts 300 --hours 4 --machines 8 --trainings 1000");
  return {command, [=] { return run_footprint(*options); }};
}

Command add_survey(CLI::App& app) {
  const auto options = std::make_shared<SurveyCommandOptions>();
  auto* command =
      app.add_subcommand("survey", "Compare every architecture on every reference task");
  command->add_option("--tasks", options->tasks, "Only these, see `tutti list tasks`")
      ->delimiter(',');
  command->add_option("--cluster", options->cluster,
                      "File with a [cluster] table, or a name below recipes/clusters");
  command->add_option("--strategies", options->strategies, "Only these, e.g. solo,ring")
      ->delimiter(',');
  command->add_option("--seeds", options->seeds, "How many seeds, or a list of them")
      ->delimiter(',');
  command->add_option("--out", options->out, "Folder of the survey; one that exists is continued");
  add_common(command, *options);
  command->footer("Example: tutti survey --cluster rack-1g --seeds 3");
  return {command, [=] { return run_survey(*options, stop_requested); }, true};
}

Command add_bench(CLI::App& app) {
  const auto options = std::make_shared<BenchOptions>();
  auto* command = app.add_subcommand("bench", "Measure against peers in the same run");
  command
      ->add_option(
          "WHAT", options->what,
          "allreduce, train, oversubscribed, model_parallel, overhead, cost_noise, ps, virtual, "
          "federated, here, network (as root), "
          "deterministic or startup")
      ->required();
  command
      ->add_option("--processes", options->processes,
                   "allreduce and network: numbers of processes or hosts, e.g. 2,4")
      ->delimiter(',');
  command->add_option("--rounds", options->rounds, "Interleaved repetitions")
      ->check(CLI::Range(1, 1000));
  command
      ->add_option("--only", options->only,
                   "allreduce, train, ps, virtual and here: only these, e.g. direct,openmpi or "
                   "direct,solos or dense,sparse or growth or tabular-mushroom")
      ->delimiter(',');
  command->add_option("--out", options->out, "Also write the JSON to this file");
  add_common(command, *options);
  command->footer("Example: tutti bench allreduce --processes 2 --rounds 5");
  return {command, [=] { return run_bench(*options, stop_requested); }, true};
}

// A reader of progress in JSON wants nothing else; a quiet run is still told to somebody who
// pressed Ctrl-C: the one at the terminal that it runs in the foreground of.
bool announces_stop(const CLI::App& command) {
  const CLI::Option* const progress = command.get_option_no_throw("--progress");
  if (progress && progress->count() > 0 &&
      value_of(progress->as<std::string>(), ProgressStyle::kNone) == ProgressStyle::kJson)
    return false;
  const CLI::Option* const quiet = command.get_option_no_throw("--quiet");
  return !quiet || quiet->count() == 0 || tcgetpgrp(STDERR_FILENO) == getpgrp();
}

int run_command(const std::function<int()>& run) {
  try {
    return run();
  } catch (const ConfigError& error) {
    return report(error, kExitBadJob);
  } catch (const DiskError& error) {
    return report(error, kExitInternal);
  } catch (const DataError& error) {
    return report(error, kExitBadJob);
  } catch (const InterruptedError& error) {
    return report(error, kExitInterrupted);
  } catch (const FabricError& error) {  // `join` that was not let in
    return report(error, kExitPeerLost);
  } catch (const std::exception& error) {
    return report(error, kExitInternal);
  }
}

int run_program(int argc, char** argv) {
  CLI::App app{
      "Tutti trains one learning task under every architecture of distributed learning.\n\n"
      "Examples:\n"
      "  tutti train recipes/fashion-lenet.toml\n"
      "  tutti train recipes/fashion-lenet-virtual.toml --set strategy.topology=tree\n"
      "  tutti compare recipes/fashion-lenet-virtual.toml\n"
      "  tutti check recipes/fashion-lenet.toml\n"
      "  tutti list strategies\n"};
  app.footer(kExitCodes);
  app.require_subcommand(1);
  app.set_version_flag("--version", "tutti " TUTTI_VERSION);
  const std::array commands = {add_train(app),     add_compare(app),
                               add_check(app),     add_join(app),
                               add_predict(app),   add_show(app),
                               add_report(app),    add_list(app),
                               add_doctor(app),    add_advise(app, stop_requested),
                               add_survey(app),    add_bench(app),
                               add_footprint(app), add_verify(app, stop_requested)};
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // for help, or the version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return report(usage_error(app, error), kExitBadJob);
  }
  const auto chosen = std::find_if(commands.begin(), commands.end(),
                                   [](const Command& command) { return bool{*command.app}; });
  if (chosen->looks_at_stop)
    stop_on_signals(stop_requested, announces_stop(*chosen->app));
  else
    end_on_signals();
  return run_command(chosen->run);
}

// From the descriptors to the last byte of output.
int be_program(int argc, char** argv) {
  open_missing_descriptors();
  explain_end_by_memory();
  ignore_broken_pipes();
  // Before anything is parsed: what is wrong with the command line is said in this form, too.
  json_wanted = std::find(argv + 1, argv + argc, std::string_view("--json")) != argv + argc;
  return finish_output(run_program(argc, argv));
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) {
  try {
    return tutti::be_program(argc, argv);
  } catch (...) {  // not even the message could be made
    std::fputs("tutti: out of memory\n", stderr);
    return tutti::kExitInternal;
  }
}
