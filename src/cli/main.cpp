// The program: parses the command line, runs a command, turns errors into messages and exit codes.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "core/error.h"
#include "core/schema.h"
#include "fabric/outcome.h"
#include "jobs/progress.h"
#include "jobs/run_record.h"

namespace {

std::atomic<bool> stop_requested{false};

// The first signal asks for a clean stop that keeps the record; a second one ends at once.
void on_signal(int number) {
  if (stop_requested.exchange(true)) _exit(128 + number);
}

void install_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);  // `tutti ... | head` ends by a write error, not by a signal
}

bool json_wanted = false;  // asked for by whichever command it is: errors follow it too

void add_common(CLI::App* app, tutti::CommonOptions& options) {
  app->add_flag(
      "--json", [&options](int64_t) { json_wanted = options.json = true; },
      "Print the result as JSON");
  app->add_flag("-q,--quiet", options.quiet, "Print no progress");
}

void add_job(CLI::App* app, tutti::JobOptions& options) {
  app->add_option("JOB", options.job, "Job file, see docs/job_reference.md")->required();
  app->add_option("--set", options.sets, "Override a setting, e.g. --set cluster.workers=8")
      ->take_all()
      ->allow_extra_args(false);
  app->add_option("--cluster", options.cluster,
                  "Run on this cluster: a file with a [cluster] table, or a name below "
                  "recipes/clusters");
  add_common(app, options);
}

int report(const std::exception& error, int code) {
  tutti::tell(fmt::format("tutti: {}\n", error.what()));
  if (json_wanted) {
    nlohmann::json object = {{"error", error.what()}, {"exit_code", code}};
    if (const auto* config = dynamic_cast<const tutti::ConfigError*>(&error))
      object["key"] = config->key();
    std::cout << tutti::json_text(object) << "\n";
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
  tutti::tell(fmt::format("tutti: standard output cannot be written: {}\n", std::strerror(reason)));
  return code == tutti::kExitDone ? tutti::kExitInternal : code;
}

// A word where a command should be, and the command that was probably meant.
std::string unknown_command(const CLI::App& app) {
  const std::vector<std::string> rest = app.remaining();
  if (!app.get_subcommands().empty() || rest.empty() || rest[0].starts_with("-")) return "";
  std::vector<std::string_view> names;
  std::string all;
  for (const CLI::App* command : app.get_subcommands({})) {
    names.push_back(command->get_name());
    all += (all.empty() ? "" : ", ") + command->get_name();
  }
  const std::string near = tutti::nearest(rest[0], names);
  return fmt::format("there is no command '{}'{}; there are {}", rest[0],
                     near.empty() ? "" : ", did you mean '" + near + "'?", all);
}

constexpr const char* kExitCodes =
    "Exit codes: 0 done (a missed target is said, not an error), 1 internal error, 2 bad job or "
    "usage,\n3 diverged, 4 peer lost, 130 interrupted.";

}  // namespace

int main(int argc, char** argv) {
  using namespace tutti;
  CLI::App app{
      "Tutti trains one learning task under every architecture of distributed learning.\n\n"
      "Examples:\n"
      "  tutti train recipes/fashion-lenet.toml\n"
      "  tutti train recipes/fashion-lenet.toml --set cluster.fabric=virtual --set "
      "cluster.workers=8\n"
      "  tutti compare recipes/fashion-lenet-virtual.toml\n"
      "  tutti check recipes/fashion-lenet.toml\n"
      "  tutti list strategies\n"};
  app.footer(kExitCodes);
  app.require_subcommand(1);
  app.set_version_flag("--version", "tutti " TUTTI_VERSION);

  TrainOptions train;
  JobOptions check;
  auto* train_app = app.add_subcommand("train", "Train a job and keep its record");
  add_job(train_app, train);
  train_app->add_option("--out", train.out, "Folder of the run (default: a new one below runs/)");
  train_app->add_option("--progress", train.progress, "live, lines or json (one object a line)")
      ->check(CLI::IsMember({"live", "lines", "json"}));
  train_app->footer("Example: tutti train recipes/fashion-lenet.toml --set cluster.workers=2");
  CompareCommandOptions compare;
  auto* compare_app = app.add_subcommand("compare", "Run a job under many architectures");
  add_job(compare_app, compare);
  compare_app
      ->add_option("--strategies", compare.strategies,
                   "Which, e.g. ring,tree,solo; listed: the [[compare]] entries (default: all)")
      ->delimiter(',');
  compare_app->add_option("--seeds", compare.seeds, "How many seeds, or which, e.g. 5 or 3,7")
      ->delimiter(',');
  compare_app->add_option("--out", compare.out,
                          "Folder, new or to go on with (default: a new one below compare/)");
  compare_app
      ->add_option("--jobs", compare.jobs, "Virtual runs at once (default: as many as cores)")
      ->check(CLI::Range(1, 4096));
  compare_app->add_option("--group", compare.group, "Group the table by a part of the taxonomy")
      ->check(CLI::IsMember({"structure", "parallelism", "optimisation", "timing", "pattern"}));
  compare_app->add_flag("--no-sharing", compare.no_sharing,
                        "Compute gradients for every run, also where strategies are equal");
  compare_app->add_flag("--strict", compare.strict,
                        "Refuse damaged run folders instead of running them again");
  compare_app->footer(
      "Examples:\n"
      "  tutti compare recipes/fashion-lenet-virtual.toml --seeds 5\n"
      "  tutti compare recipes/stragglers.toml --strategies ring,butterfly,solo --out compare/s\n"
      "  tutti compare recipes/tasks/image-fashion.toml --cluster two-racks\n"
      "The same command on the same --out goes on where it ended. See docs/compare.md.");
  auto* check_app = app.add_subcommand("check", "Check a job and say what it will take");
  add_job(check_app, check);
  check_app->footer("Example: tutti check recipes/fashion-lenet.toml --set strategy.topology=tree");

  JoinCommand join;
  auto* join_app = app.add_subcommand("join", "Take part in a run that was launched elsewhere");
  join_app->add_option("HOST:PORT", join.address, "Where the launcher waits")->required();
  join_app->add_option("--token", join.token,
                       "The token that the launcher printed (default: $TUTTI_TOKEN)");
  join_app->add_option("--data-dir", join.data_dir,
                       "Folder of the data files here (default: the launcher's path)");
  join_app->add_flag("-q,--quiet", join.quiet, "Print no progress");
  join_app->footer("Example: tutti join 192.168.1.10:4000 --token 0123...");

  PredictOptions predict;
  auto* predict_app = app.add_subcommand("predict", "Predict with the parameters of a run");
  predict_app->add_option("RUN", predict.run, "Folder of a finished run")->required();
  predict_app->add_option("--data", predict.data,
                          "File in the format of the run's data (default: its test samples)");
  predict_app->add_option("--labels", predict.labels, "IDX file of labels, to measure quality");
  predict_app->add_option("-o,--output", predict.output, "Write the CSV here");
  add_common(predict_app, predict);
  predict_app->footer("Example: tutti predict runs/iris --data flowers.csv -o predicted.csv");

  ShowOptions show;
  auto* show_app = app.add_subcommand("show", "Show finished runs side by side");
  show_app->add_option("RUN", show.runs, "Folders of finished runs")->required();
  add_common(show_app, show);
  show_app->footer("Example: tutti show runs/*");

  ReportOptions page;
  auto* report_app = app.add_subcommand("report", "Make the page of a comparison, and exports");
  report_app->add_option("PATH", page.paths, "Folder of a comparison, its compare.json, or runs")
      ->required();
  report_app->add_option("--out", page.out,
                         "The page (default: report.html beside the comparison)");
  report_app->add_option("--tensorboard", page.tensorboard, "Write TensorBoard event files here");
  report_app->add_option("--trace", page.trace, "Write a trace for Perfetto or chrome://tracing");
  report_app->add_option("--csv", page.csv, "Write a row per strategy here, and curves beside it");
  add_common(report_app, page);
  report_app->footer("Example: tutti report runs/fashion-compare --trace trace.json");

  std::string kind;
  CommonOptions list, doctor;
  auto* list_app = app.add_subcommand("list", "List what there is to choose from");
  list_app
      ->add_option("KIND", kind,
                   "strategies, topologies, optimizers, models, data, fabrics, tasks or settings")
      ->required();
  add_common(list_app, list);
  list_app->footer("Example: tutti list strategies");
  auto* doctor_app = app.add_subcommand("doctor", "Say what this machine offers");
  add_common(doctor_app, doctor);
  doctor_app->footer("Example: tutti doctor");

  AdviseCliOptions advise;
  auto* advise_app =
      app.add_subcommand("advise", "Say which architecture to use for a job on a cluster");
  advise_app->add_option("JOB", advise.job, "Job file with a target")->required();
  advise_app
      ->add_option("--cluster", advise.cluster,
                   "File with a [cluster] table, or the name of one below recipes/clusters")
      ->required();
  advise_app->add_option("--set", advise.sets, "Override a setting of the job")
      ->take_all()
      ->allow_extra_args(false);
  advise_app->add_option("--strategies", advise.strategies, "Only these, e.g. ring,butterfly")
      ->delimiter(',');
  advise_app
      ->add_option("--seeds", advise.seeds,
                   "Runs with real gradients of each strategy (default: 3 for those that are "
                   "equal to one worker, 1 for others)")
      ->check(CLI::Range(1, 100));
  advise_app->add_flag("--quick", advise.quick, "Rank only, without what to change");
  advise_app->add_flag("--declared-speed", advise.declared,
                       "The cluster's speed is what this model gets there: do not measure here");
  add_common(advise_app, advise);
  advise_app->footer("Example: tutti advise recipes/fashion-lenet.toml --cluster rack-1g");

  SurveyCommandOptions survey;
  auto* survey_app =
      app.add_subcommand("survey", "Compare every architecture on every reference task");
  survey_app->add_option("--tasks", survey.tasks, "Only these, see `tutti list tasks`")
      ->delimiter(',');
  survey_app->add_option("--cluster", survey.cluster,
                         "File with a [cluster] table, or a name below recipes/clusters");
  survey_app->add_option("--strategies", survey.strategies, "Only these, e.g. solo,ring")
      ->delimiter(',');
  survey_app->add_option("--seeds", survey.seeds, "How many seeds, or a list of them")
      ->delimiter(',');
  survey_app->add_option("--out", survey.out, "Folder of the survey; one that exists is continued");
  add_common(survey_app, survey);
  survey_app->footer("Example: tutti survey --cluster rack-1g --seeds 3");

  BenchOptions bench;
  auto* bench_app = app.add_subcommand("bench", "Measure against peers in the same run");
  bench_app
      ->add_option("WHAT", bench.what,
                   "allreduce, train, model_parallel, ps, virtual, federated, network (as root), "
                   "deterministic or startup")
      ->required();
  bench_app
      ->add_option("--processes", bench.processes,
                   "allreduce and network: numbers of processes or hosts, e.g. 2,4")
      ->delimiter(',');
  bench_app->add_option("--rounds", bench.rounds, "Interleaved repetitions")
      ->check(CLI::Range(1, 1000));
  bench_app
      ->add_option("--only", bench.only,
                   "allreduce, train and ps: only these, e.g. direct,openmpi or direct,solos or "
                   "dense,sparse")
      ->delimiter(',');
  bench_app->add_option("--out", bench.out, "Also write the JSON to this file");
  add_common(bench_app, bench);
  bench_app->footer("Example: tutti bench allreduce --processes 2 --rounds 5");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (const std::string message = unknown_command(app); !message.empty())
      return report(ConfigError("", message), kExitBadJob);
    return app.exit(error) == 0 ? kExitDone : kExitBadJob;
  }

  install_signal_handlers();
  const auto run = [&] {
    if (*train_app) return run_train(train, stop_requested);
    if (*compare_app) return run_compare(compare, stop_requested);
    if (*join_app) return run_join(join, stop_requested);
    if (*check_app) return run_check(check);
    if (*predict_app) return run_predict(predict);
    if (*show_app) return run_show(show);
    if (*advise_app) return run_advise(advise, stop_requested);
    if (*report_app) return run_report(page);
    if (*survey_app) return run_survey(survey, stop_requested);
    if (*list_app) return run_list(kind, list);
    if (*doctor_app) return run_doctor(doctor);
    return run_bench(bench, stop_requested);
  };
  try {
    return finish_output(run());
  } catch (const ConfigError& error) {
    return report(error, kExitBadJob);
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
