// The options of `tutti advise`.
#include <memory>

#include "cli/command_line.h"

namespace tutti {

Command add_advise(CLI::App& app, const std::atomic<bool>& stop) {
  const auto options = std::make_shared<AdviseCliOptions>();
  auto* command =
      app.add_subcommand("advise", "Say which architecture to use for a job on a cluster");
  command->add_option("JOB", options->job, "Job file with a target")->required();
  command->add_option("--cluster", options->cluster,
                      "File with a [cluster] table, or the name of one below recipes/clusters "
                      "(default: the job's own, if it is virtual)");
  command->add_option("--set", options->sets, "Override a setting of the job")
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--strategies", options->strategies, "Only these, e.g. ring,butterfly")
      ->delimiter(',');
  command
      ->add_option("--seeds", options->seeds,
                   "Runs with real gradients of each strategy that can win (default: up to 3)")
      ->check(CLI::Range(1, 100));
  command->add_flag("--quick", options->quick, "Rank only, without what to change");
  command->add_flag("--declared-speed", options->declared,
                    "The cluster's speed is what this model gets there: do not measure here");
  command
      ->add_option("--write,--out", options->write,
                   "Write the job to run: the best choice on the nodes that it uses")
      ->check(empty_name);
  command
      ->add_option("--budget", options->budget,
                   "End after this time with the answer so far, e.g. 90s or 10min; Ctrl-C does the "
                   "same at any time")
      ->default_str("5min");
  command->add_flag("--complete", options->complete,
                    "Learn every strategy, also those that cannot win, on the whole cluster, "
                    "without a budget");
  command->add_flag("--no-cache", options->no_cache,
                    "Learn anew, and keep nothing in ~/.cache/tutti/lessons");
  command->add_flag("--verbose", options->verbose, "Say in full what is not possible here");
  add_common(command, *options);
  command->footer(
      "Example: tutti advise recipes/fashion-lenet.toml --cluster rack-1g\n"
      "Example: tutti advise recipes/fashion-lenet.toml --cluster edge-wan --quick --budget 1min "
      "--write best.toml");
  return {command, [=, &stop] { return run_advise(*options, stop); }, true};
}

}  // namespace tutti
