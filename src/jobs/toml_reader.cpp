// Reads a job from TOML: a file, what was set on top of it, and its [[compare]] entries.
#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <filesystem>
#include <sstream>

#include "core/error.h"
#include "jobs/job.h"
#include "jobs/run_folder.h"
#include "jobs/toml_fields.h"

namespace tutti {
namespace {

// A file can nest 256 inline tables, each below a key of its own. toml++ follows what is nested by
// recursion, which this keeps far from the end of the stack; the deepest setting has 4 parts.
constexpr size_t kMostKeyParts = 16;
constexpr std::string_view kKind = "kind";  // the key that names a component

// Skips the string that begins at `at`, and returns where its last quote is. What is wrong with it
// is for the parser to say.
size_t end_of_string(const std::string& text, size_t at) {
  const std::string quote(1, text[at]);
  const bool escapes = text[at] == '"';
  const std::string three = quote + quote + quote;
  const bool lines = text.compare(at, 3, three) == 0;
  for (size_t i = at + (lines ? 3 : 1); i < text.size(); ++i) {
    if (escapes && text[i] == '\\')
      ++i;
    else if (lines ? text.compare(i, 3, three) == 0 : text[i] == quote[0] || text[i] == '\n')
      return lines ? i + 2 : i;
  }
  return text.size();
}

bool may_be_in_key(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_-. \t\"'").find(c) != std::string_view::npos;
}

// Throws ConfigError for a key of too many parts, which toml++ would read into as many tables.
void refuse_long_keys(const std::string& text, const std::string& file) {
  size_t dots = 0, line = 1;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"' || text[i] == '\'') {
      const size_t end = end_of_string(text, i);
      for (; i < end; ++i)
        if (text[i] == '\n') ++line;
      if (i >= text.size()) return;
    }
    if (text[i] == '#') i = std::min(text.find('\n', i), text.size() - 1);
    if (!may_be_in_key(text[i])) dots = 0;
    if (text[i] == '\n') ++line;
    if (text[i] == '.' && ++dots >= kMostKeyParts)
      throw ConfigError("", fmt::format("{}:{}: a key has more than {} parts; no setting has",
                                        file.empty() ? "command line" : file, line, kMostKeyParts));
  }
}

toml::table parse_toml(const std::string& text, const std::string& file) {
  refuse_long_keys(text, file);
  return file.empty() ? toml::parse(text) : toml::parse(text, file);
}

// A name replaces a whole table: after task.model=mlp nothing else of the model is left.
void tell_replaced(const toml::node* before, const toml::node& after, const std::string& setting,
                   TomlOrigin& origin) {
  if (!before || !before->is_table() || !after.is_string()) return;
  const std::string table = setting.substr(0, setting.find('='));
  for (const auto& [key, node] : *before->as_table()) {
    if (key.str() == kKind) continue;
    origin.dropped.push_back(fmt::format("{}: {}.{} = {} was dropped: --set {} replaces all of {}",
                                         toml_place(node, origin.file), table, key.str(),
                                         toml_text(node), setting, table));
  }
}

// Sets one "a.b=value": the value is TOML, or plain text when it is not.
void apply_override(toml::table& root, const std::string& text, TomlOrigin& origin) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw ConfigError(text, fmt::format("--set {}: write it as key=value, e.g. "
                                        "--set cluster.workers=8",
                                        text));
  const std::string value = text.substr(equals + 1);
  toml::table parsed;
  try {
    parsed = parse_toml("value = " + value, "");
  } catch (const toml::parse_error&) {
    parsed.insert_or_assign("value", value);
  }
  const std::string key = text.substr(0, equals);
  std::erase_if(origin.bare, [&](const auto& other) { return other.first.starts_with(key + "."); });
  origin.bare[key] = value;
  toml::table* table = &root;
  std::stringstream path(key);
  std::string part;
  std::vector<std::string> parts;
  while (std::getline(path, part, '.')) parts.push_back(part);
  if (parts.size() > kMostKeyParts)
    throw ConfigError("", fmt::format("--set: a key has {} parts; no setting has more than {}",
                                      parts.size(), kMostKeyParts));
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    toml::node* next = table->get(parts[i]);
    if (next && next->is_string()) {  // model = "lenet" becomes model = { kind = "lenet" }
      const std::string kind = **next->as_string();
      table->insert_or_assign(parts[i], toml::table{{"kind", kind}});
      next = table->get(parts[i]);
    }
    if (!next) {
      table->insert(parts[i], toml::table{});
      next = table->get(parts[i]);
    }
    if (!next->is_table())
      throw ConfigError(text, fmt::format("--set {}: '{}' is not a table", text, parts[i]));
    table = next->as_table();
  }
  // Without a source position, so that an error says "command line" instead of a line.
  toml::node& fresh = *parsed.get("value");
  const toml::node* const before = table->get(parts.back());
  if (!before || before->value<std::string>() != fresh.value<std::string>())
    origin.changed.insert(key);
  tell_replaced(before, fresh, text, origin);
  fresh.visit([&](auto& node) {
    using T = std::decay_t<decltype(node)>;
    if constexpr (toml::is_value<T>)
      table->insert_or_assign(parts.back(), node.get());
    else
      table->insert_or_assign(parts.back(), node);
  });
}

// A copy that shares nothing with `job`; strategies are copied by their settings.
Job copy_of(const Job& job) {
  Job copy = job;
  copy.compare.clear();
  const toml::table settings = toml::parse(resolved_toml(copy));
  TomlOrigin unused;
  Job read;
  TomlReader reader(settings, unused, "");
  visit(reader, read);
  copy.strategy = read.strategy;
  return copy;
}

// Reads what is given over what `job` has. Leaves unknown keys to the caller.
void read_over(Job& job, TomlReader& reader, const TomlOrigin& origin, const std::string& prefix) {
  try {
    visit(reader, job);
  } catch (const PlacedError&) {
    throw;
  } catch (const ConfigError& error) {  // a component's own, about a value of several parts
    throw ConfigError(error.key(),
                      placed(origin.places, prefix + error.key(), error.key(), error.what()));
  }
  // The resolved job must mean the same wherever it is kept.
  complete_paths(job.task.data, job.base_dir);
}

// Who names no number of workers gets as many as the strategy is for: one alone, or the default.
void choose_workers(Job& job, const std::string& strategy_before) {
  if (job.places.contains("cluster.workers")) return;
  const bool alone = strategy_entry(job.strategy_kind).one_worker;
  const bool before = strategy_entry(strategy_before).one_worker;
  if (alone && before)
    job.cluster.workers = 1;
  else if (alone)
    job.strategy->fit(job.cluster);  // with what the cluster says of each worker
  else if (before && job.cluster.workers == 1)
    job.cluster.workers = ClusterConfig{}.workers;
}

// The job with what `changes` says put on top of it.
Job overlay(const Job& job, const toml::table& changes, TomlOrigin& origin,
            const std::string& prefix) {
  Job result = copy_of(job);
  // A list replaces the one before: merged element by element it would say something else.
  if (changes["cluster"]["stragglers"]) result.cluster.stragglers.clear();
  if (changes["cluster"]["faults"]) result.cluster.faults.clear();
  if (changes["cluster"]["host_kinds"]) result.cluster.host_kinds.clear();
  TomlReader reader(changes, origin, prefix);
  read_over(result, reader, origin, prefix);
  reader.refuse_unknown();
  for (const auto& [key, place] : origin.places) result.places[key.substr(prefix.size())] = place;
  if (!job.places.empty()) choose_workers(result, job.strategy_kind);
  return result;
}

// Reads the [[compare]] entries: each is `job` with its own settings on top.
void read_entries(Job& job, const toml::node& node, const TomlOrigin& outer) {
  const std::string& file = outer.file;
  const auto fail = [&](const toml::node& where, const std::string& problem) {
    throw ConfigError("compare", fmt::format("{}: compare {}", toml_place(where, file), problem));
  };
  const toml::array* list = node.as_array();
  if (!list) return fail(node, "must be a list of tables: write [[compare]]");
  for (const toml::node& element : *list) {
    const toml::table* table = element.as_table();
    if (!table) return fail(element, "must be a list of tables: write [[compare]]");
    if (!table->contains("name")) return fail(element, "needs a name: add name = \"...\"");
    TomlOrigin origin;
    origin.file = file;
    for (const std::string& key : outer.changed) origin.changed.insert("compare." + key);
    Job entry = overlay(job, *table, origin, "compare.");
    job.dropped.insert(job.dropped.end(), origin.dropped.begin(), origin.dropped.end());
    for (const Job& other : job.compare)
      if (other.name == entry.name)
        return fail(element, fmt::format("has two entries named \"{}\"", entry.name));
    job.compare.push_back(std::move(entry));
  }
}

void read_settings(const toml::table& root, TomlOrigin& origin, Job& job) {
  origin.places[""] = origin.file;
  TomlReader reader(root, origin, "");
  read_over(job, reader, origin, "");
  const toml::node* entries = reader.find("compare");
  reader.refuse_unknown();
  job.places = origin.places;
  job.dropped = origin.dropped;
  choose_workers(job, job.strategy_kind);
  if (entries) read_entries(job, *entries, origin);
}

toml::table read_table(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw ConfigError("", fmt::format("{}: is a directory; name a file in it", path));
  if (!std::filesystem::exists(path, ignored))
    throw ConfigError("", fmt::format("{}: there is no such file", path));
  try {
    return parse_toml(read_file(path), path);
  } catch (const toml::parse_error& error) {
    throw ConfigError(
        "", fmt::format("{}:{}: {}", path, error.source().begin.line, error.description()));
  } catch (const DataError& error) {
    throw ConfigError("", error.what());
  }
}

}  // namespace

Job with_settings(const Job& job, const std::vector<std::string>& settings) {
  toml::table changes;
  TomlOrigin origin;
  for (const std::string& text : settings) apply_override(changes, text, origin);
  return overlay(job, changes, origin, "");
}

Job parse_job(const std::string& text, const std::string& file) {
  Job job;
  TomlOrigin origin;
  origin.file = file;
  try {
    read_settings(parse_toml(text, file), origin, job);
  } catch (const toml::parse_error& error) {
    throw ConfigError(
        "", fmt::format("{}:{}: {}", file, error.source().begin.line, error.description()));
  }
  return job;
}

std::string strategy_settings(const Job& job) {
  Job copy = job;
  const toml::table table = toml::parse(resolved_toml(copy));
  std::ostringstream text;
  if (const toml::table* strategy = table["strategy"].as_table())
    text << toml::json_formatter{*strategy};
  return text.str();
}

Job load_job(const std::string& path, const std::vector<std::string>& overrides,
             const std::string& cluster_path) {
  Job job;
  toml::table root;
  TomlOrigin origin;
  origin.file = path.empty() ? "command line" : path;
  if (!path.empty()) {
    root = read_table(path);
    job.name = std::filesystem::path(path).stem().string();
    job.base_dir = std::filesystem::absolute(path).parent_path().string();
  }
  if (!cluster_path.empty()) {
    toml::table other = read_table(cluster_path);
    toml::node* cluster = other.get("cluster");
    if (!cluster || !cluster->is_table())
      throw ConfigError("cluster", fmt::format("{}: there is no [cluster] in it", cluster_path));
    root.insert_or_assign("cluster", std::move(*cluster->as_table()));  // a copy forgets its lines
  }
  for (const std::string& text : overrides) apply_override(root, text, origin);
  read_settings(root, origin, job);
  return job;
}

}  // namespace tutti
