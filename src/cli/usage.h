// What is wrong with a command line, in the words of this program: CLI11 finds it, and says it in
// its own.
#pragma once

#include "core/error.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace tutti {

// `app` is what failed to parse. Names the nearest command or option where one is unknown.
ConfigError usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace tutti
