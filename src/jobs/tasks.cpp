#include "jobs/tasks.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/error.h"

namespace tutti {

const std::vector<ReferenceTask>& reference_tasks() {
  static const std::vector<ReferenceTask> tasks = {
      {"image-fashion", "image classification", "ten kinds of clothing, by LeNet",
       "./scripts/setup"},
      {"image-cifar10", "image classification", "ten kinds of things, by ResNet-20",
       "./scripts/fetch-cifar10"},
      {"language-kjv", "language modelling", "the King James Bible by a transformer",
       "./scripts/fetch-king-james"},
      {"tabular-mushroom", "tabular classification", "is a mushroom edible?", "./scripts/setup"},
      {"clicks-heart", "click-through prediction", "two classes from a LIBSVM file",
       "./scripts/setup"},
      {"regression-abalone", "regression", "the age of abalones by least squares",
       "./scripts/setup"},
      {"timeseries-weather", "time-series prediction", "tomorrow's temperature in Seattle",
       "./scripts/fetch-weather"},
      {"anomaly-thyroid", "anomaly classification", "thyroids that work wrongly",
       "./scripts/setup"},
  };
  return tasks;
}

std::string recipe_of(const ReferenceTask& task) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  const std::string file = fmt::format("recipes/tasks/{}.toml", task.name);
  std::vector<fs::path> candidates = {folder.parent_path() / "share" / "tutti" / file};
  for (fs::path above = folder; above != above.root_path(); above = above.parent_path())
    candidates.push_back(above / file);  // build/release, or a folder of tests below
  candidates.push_back(fs::path(TUTTI_SOURCE_DIRECTORY) / file);
  std::error_code ignored;
  for (const fs::path& candidate : candidates)
    if (fs::is_regular_file(candidate, ignored)) return candidate.string();
  throw Error(fmt::format("{}: not found above the program in {}, nor in {}", file, folder.string(),
                          TUTTI_SOURCE_DIRECTORY));
}

std::vector<std::string> missing_files(const Job& job) {
  std::vector<std::string> missing;
  std::error_code ignored;
  for (const std::string& file : data_files(job.task.data, job.base_dir))
    if (!std::filesystem::exists(file, ignored)) missing.push_back(file);
  return missing;
}

}  // namespace tutti
