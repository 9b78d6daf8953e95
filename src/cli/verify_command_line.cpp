// The options of `tutti verify`.
#include <memory>

#include "cli/command_line.h"

namespace tutti {

Command add_verify(CLI::App& app, const std::atomic<bool>& stop) {
  const auto options = std::make_shared<VerifyCommandOptions>();
  auto* command = app.add_subcommand(
      "verify", "Run a bundle of a comparison again, and say which claims are confirmed");
  command->add_option("FILE", options->file, "What `tutti compare --bundle FILE` wrote")
      ->required();
  command
      ->add_option("--part", options->part,
                   "Only these strategies, e.g. ring,local-sgd-16 (default: all)")
      ->delimiter(',');
  command
      ->add_option("--seeds", options->seeds,
                   "How many of its seeds, or which, e.g. 1 or 3,7 (default: all)")
      ->delimiter(',');
  command->add_option("--max-time", options->max_time,
                      "Run no longer than this, e.g. \"10 min\"; the claims that are left are not "
                      "checked");
  command->add_option("--data-dir", options->data_dir,
                      "Folder of the data files here (default: where its job says, if that is the "
                      "data of the comparison)");
  command->add_option(
      "--out", options->out,
      "Keep the runs in this folder, and go on with it (default: they are removed)");
  command->add_option("--jobs", options->jobs, "Virtual runs at once (default: as many as cores)")
      ->check(CLI::Range(1, 4096));
  command->add_flag("--all", options->all, "Print every claim, not only those not confirmed");
  add_common(command, *options);
  command->footer(
      "Examples:\n"
      "  tutti verify fashion.bundle.tar.gz\n"
      "  tutti verify fashion.bundle.tar.gz --part ring,local-sgd-16 --seeds 1\n"
      "  tutti verify fashion.bundle.tar.gz --max-time \"10 min\" --json\n"
      "Exit codes: 0 all claims that were checked are confirmed, 5 some are not, 2 it could not "
      "be run.\nSee docs/compare.md.");
  return {command, [=, &stop] { return run_verify(*options, stop); }, true};
}

}  // namespace tutti
