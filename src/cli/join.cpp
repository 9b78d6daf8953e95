// `tutti join`: takes part in a run that `tutti train` launched on another machine.
#include "jobs/join.h"

#include <cstdlib>

#include "cli/commands.h"
#include "core/error.h"

namespace tutti {

int run_join(const JoinCommand& options, const std::atomic<bool>& stop) {
  JoinSettings settings{options.address, options.token, options.data_dir, options.quiet};
  if (settings.token.empty()) {
    const char* token = std::getenv("TUTTI_TOKEN");
    if (token == nullptr)
      throw ConfigError("--token",
                        "the token is missing: give --token, or TUTTI_TOKEN in the environment, as "
                        "the launcher printed it");
    settings.token = token;
  }
  join_run(settings, stop);
}

}  // namespace tutti
