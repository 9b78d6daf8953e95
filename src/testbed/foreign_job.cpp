#include "testbed/foreign_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.h"
#include "core/printable.h"
#include "data/fingerprint.h"
#include "models/sparse_model.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr const char* kRemedy =
    "name the folder that has the data of the comparison by --data-dir FOLDER";

std::optional<Data> data_if_readable(const Job& job) {
  try {
    Data data = load_data(job.task.data, job.task.seed, job.base_dir);
    data.dataset = dataset_for(job.task.model, std::move(data.dataset));
    return data;
  } catch (const Error&) {  // says what the file contains
    return std::nullopt;
  }
}

}  // namespace

void require_harmless(const Job& job, const std::string& where) {
  const json settings = json::parse(strategy_settings(job), nullptr, false);
  const json resume = settings.is_object() ? settings.value("resume", json()) : json();
  if (resume.is_string() && !resume.get<std::string>().empty())
    throw ConfigError(
        "strategy.resume",
        fmt::format("{}: its job reads the folder \"{}\" (strategy.resume), which is not part of "
                    "the bundle; it cannot be verified",
                    where, printable(resume.get<std::string>())));
  const std::string waits = job.cluster.remote > 0       ? "cluster.remote"
                            : job.cluster.remote_servers ? "cluster.remote_servers"
                                                         : "";
  if (!waits.empty())
    throw ConfigError(waits, fmt::format("{}: its job waits at {} for other machines ({}); it "
                                         "cannot be verified by one",
                                         where, printable(job.cluster.listen), waits));
}

void require_expected_data(const Job& job, const TaskIdentity& expected, const std::string& where) {
  if (job.task.data.source.entry().generated) return;
  const std::vector<std::string> files = data_files(job.task.data, job.base_dir);
  const std::string shown = printable(fmt::format("{}", fmt::join(files, ", ")));
  for (const std::string& file : files) {
    std::error_code unknown;
    if (!std::filesystem::exists(file, unknown))
      throw DataError(fmt::format("{}: its job reads {}, and {} is not there; {}", where, shown,
                                  printable(file), kRemedy));
  }
  const std::optional<Data> data = data_if_readable(job);
  if (!data || contents_fingerprint(*data->dataset) != expected.data ||
      split_fingerprint(data->splits) != expected.split)
    throw DataError(
        fmt::format("{}: its job reads {}, which is not the data of the comparison; it "
                    "is not used: {}",
                    where, shown, kRemedy));
}

}  // namespace tutti
