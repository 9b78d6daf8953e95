#include "cli/usage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "core/schema.h"

namespace tutti {
namespace {

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  const std::string near = nearest(word, {known.begin(), known.end()});
  return near.empty() ? "" : ", did you mean '" + near + "'?";
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

bool is_option(const std::string& word) { return word.size() > 1 && word.starts_with("-"); }

// An option that `command` does not have, or has but that stands before its name.
ConfigError unknown_option(const std::string& word, const CLI::App& command, bool chosen,
                           const std::string& help) {
  const std::string option = word.substr(0, word.find('='));
  const std::vector<std::string> known = options_of(command);
  if (std::find(known.begin(), known.end(), option) != known.end())
    return {option, fmt::format("option '{0}' belongs behind the command: tutti {1} ... {0}",
                                option, command.get_name())};
  return {option,
          fmt::format("{} option '{}'{}{}", chosen ? command.get_name() + " has no" : "there is no",
                      option, did_you_mean(option, known), help)};
}

}  // namespace

ConfigError usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const CLI::App& command = chosen.empty() ? app : *chosen.front();
  const std::string help =
      fmt::format("; see tutti {}--help", chosen.empty() ? "" : command.get_name() + " ");
  const std::vector<std::string> rest = app.remaining(true);
  const auto option = std::find_if(rest.begin(), rest.end(), is_option);
  if (!chosen.empty() && option != rest.end())
    return unknown_option(*option, command, !chosen.empty(), help);
  if (chosen.empty()) {
    const std::vector<std::string> commands = commands_of(app);
    const auto word = std::find_if_not(rest.begin(), rest.end(), is_option);
    if (word != rest.end())
      return {"", fmt::format("there is no command '{}'{}; there are {}", *word,
                              did_you_mean(*word, commands), fmt::join(commands, ", "))};
    if (option != rest.end()) return unknown_option(*option, command, !chosen.empty(), help);
    return {"", fmt::format("a subcommand is required; there are {}", fmt::join(commands, ", "))};
  }
  if (!rest.empty())
    return {"", fmt::format("{} does not take '{}' as well{}", command.get_name(),
                            fmt::join(rest, " "), help)};
  return {"", fmt::format("{}: {}{}", command.get_name(), error.what(), help)};
}

}  // namespace tutti
