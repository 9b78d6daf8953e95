#include "jobs/recipes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/schema.h"

namespace tutti {

namespace fs = std::filesystem;

namespace {
constexpr const char* kJobFile = ".toml";
}

std::string recipes_folder() {
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed).parent_path();
  // <prefix>/bin/tutti, and build/<preset>/tutti or build/<preset>/tests/a_test of a source tree.
  for (const char* way : {"../share/tutti/recipes", "../../recipes", "../../../recipes"})
    if (fs::is_directory(program / way, failed))
      return fs::weakly_canonical(program / way, failed).string();
  return "";
}

std::vector<std::string> recipe_names(const std::string& group) {
  std::vector<std::string> names;
  std::error_code failed;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(fs::path(recipes_folder()) / group, failed))
    if (entry.path().extension() == kJobFile) names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string find_recipe(const std::string& group, const std::string& name_or_file) {
  std::error_code failed;
  if (fs::is_regular_file(name_or_file, failed)) return name_or_file;
  const std::vector<std::string> names = recipe_names(group);
  if (std::find(names.begin(), names.end(), name_or_file) != names.end())
    return (fs::path(recipes_folder()) / group / (name_or_file + ".toml")).string();
  const std::string guess = nearest(name_or_file, {names.begin(), names.end()});
  throw ConfigError(
      group, fmt::format("{}: there is no such file, and no recipe of that name{}; {} come with "
                         "the program",
                         name_or_file, guess.empty() ? "" : ", did you mean '" + guess + "'?",
                         fmt::join(names, ", ")));
}

}  // namespace tutti
