// A command as CLI11 parses it: its options are parsed into what `run` holds. main.cpp has most of
// them; what is here is shared with the others.
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <functional>

#include "cli/commands.h"

namespace tutti {

struct Command {
  CLI::App* app;
  std::function<int()> run;
  bool looks_at_stop = false;  // while it runs
};

inline void add_common(CLI::App* app, CommonOptions& options) {
  app->add_flag("--json", options.json, "Print the result as JSON");
  app->add_flag("-q,--quiet", options.quiet, "Print no progress");
}

// Why a name of a file that was given is none; empty: it is one. As `--write "$FILE"` may make it.
inline std::string empty_name(const std::string& name) {
  return name.empty() ? "the name of the file is empty" : "";
}

Command add_advise(CLI::App& app, const std::atomic<bool>& stop);
Command add_verify(CLI::App& app, const std::atomic<bool>& stop);

}  // namespace tutti
