#include "jobs/tasks.h"

#include <filesystem>

#include "jobs/recipes.h"

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
  return find_recipe("tasks", std::string(task.name));
}

std::vector<std::string> missing_files(const Job& job) {
  std::vector<std::string> missing;
  std::error_code ignored;
  for (const std::string& file : data_files(job.task.data, job.base_dir))
    if (!std::filesystem::exists(file, ignored)) missing.push_back(file);
  return missing;
}

}  // namespace tutti
