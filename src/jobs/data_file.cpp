#include "jobs/data_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/shallow_json.h"
#include "data/fingerprint.h"
#include "jobs/record_schema.h"
#include "jobs/run_folder.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr size_t kMostDimensions = 4;
constexpr int64_t kMostValues = int64_t{1} << 53;  // a number in JSON counts exactly up to here

// Reports valid JSON that cannot describe any data.
struct Impossible {
  std::string problem;
};

[[noreturn]] void refuse_data_file(const std::string& path, const std::string& problem) {
  throw DataError(
      fmt::format("{}: {}; put back the file that the run wrote, or remove it: then names and "
                  "scales are read from the training data again, which must be unchanged",
                  path, problem));
}

// JSON needs UTF-8, but names may hold any bytes. Other names are written as lists of numbers.
json json_of(const std::vector<std::string>& names) {
  json result = json::array();
  for (const std::string& name : names) {
    json text = name;
    try {
      (void)text.dump();
    } catch (const json::type_error&) {
      text = std::vector<uint8_t>(name.begin(), name.end());
    }
    result.push_back(std::move(text));
  }
  return result;
}

std::vector<std::string> names_in(const json& list) {
  std::vector<std::string> names;
  for (const json& name : list) {
    if (name.is_string()) {
      names.push_back(name.get<std::string>());
      continue;
    }
    const auto bytes = name.get<std::vector<uint8_t>>();
    names.emplace_back(bytes.begin(), bytes.end());
  }
  return names;
}

json json_of(const RunData& data) {
  const DataDescription& d = data.description;
  json means = json::array(), scales = json::array();
  for (const FeatureScale& feature : d.features) {
    means.push_back(feature.mean);
    scales.push_back(feature.scale);
  }
  return {{"schema", kDataSchema},
          {"kind", d.kind},
          {"sample_shape", d.sample_shape},
          {"classes", d.classes},
          {"class_names", json_of(d.class_names)},
          {"answers_per_sample", d.answers_per_sample},
          {"standardised", {{"means", means}, {"scales", scales}}},
          {"bytes", {{"scale", d.bytes.scale}, {"offset", d.bytes.offset}}},
          {"column_names", json_of(d.columns)},
          {"metric", data.metric},
          {"contents", data.contents},
          {"split", data.split},
          {"task", data.task}};
}

RunData run_data_in(const json& j) {
  RunData data{.description = {.kind = j.at("kind"),
                               .sample_shape = j.at("sample_shape"),
                               .classes = j.at("classes"),
                               .class_names = names_in(j.at("class_names")),
                               .answers_per_sample = j.at("answers_per_sample"),
                               .features = {},
                               .bytes = {j.at("bytes").at("scale"), j.at("bytes").at("offset")},
                               .columns = names_in(j.at("column_names"))},
               .metric = j.at("metric"),
               .contents = j.at("contents"),
               .split = j.at("split"),
               .task = j.at("task")};
  const std::vector<double> means = j.at("standardised").at("means");
  const std::vector<double> scales = j.at("standardised").at("scales");
  if (means.size() != scales.size()) throw Impossible{"it has more means than scales, or less"};
  for (size_t i = 0; i < means.size(); ++i) {
    if (!std::isfinite(means[i]) || !std::isfinite(scales[i]))
      throw Impossible{"a mean or scale is not a finite number"};
    data.description.features.push_back({means[i], scales[i]});
  }
  return data;
}

// Callers compute with these sizes, so impossible ones are refused here.
void check_sizes(const RunData& data) {
  const DataDescription& d = data.description;
  int64_t elements = 1;
  if (d.sample_shape.empty() || d.sample_shape.size() > kMostDimensions)
    throw Impossible{"a sample has no dimensions, or too many"};
  for (const int64_t extent : d.sample_shape) {
    if (extent < 1 || extent > kMostValues / elements)
      throw Impossible{fmt::format("samples of [{}] cannot be", fmt::join(d.sample_shape, ", "))};
    elements *= extent;
  }
  if (d.classes < 0 || static_cast<uint64_t>(d.classes) != d.class_names.size())
    throw Impossible{fmt::format("{} classes have {} names", d.classes, d.class_names.size())};
  if (d.answers_per_sample < 1 || d.answers_per_sample > elements)
    throw Impossible{fmt::format("{} answers for a sample cannot be", d.answers_per_sample)};
  const auto for_each = [&](size_t count) {
    return count == 0 || count == static_cast<size_t>(elements);
  };
  if (!for_each(d.features.size()) || !for_each(d.columns.size()))
    throw Impossible{fmt::format("{} features have {} scales and {} names", elements,
                                 d.features.size(), d.columns.size())};
}

}  // namespace

std::string data_file_of(const std::string& folder) { return folder + "/data.json"; }

RunData run_data(const Job& job, const Resolved& resolved, const TaskIdentity& task) {
  const Dataset& dataset = *resolved.data.dataset;
  // For synthetic data the identity holds the settings, not a fingerprint of the samples.
  const bool synthetic = job.task.data.source.entry().generated;
  return {.description = describe(job.task.data, dataset),
          .metric = task.metric,
          .contents = synthetic ? contents_fingerprint(dataset) : task.data,
          .split = task.split,
          .task = task.fingerprint};
}

void save_run_data(const std::string& folder, const RunData& data) {
  json content = json_of(data);
  content["checksum"] = text_fingerprint(content.dump());
  write_file(data_file_of(folder), content.dump() + "\n");
}

std::optional<RunData> load_run_data(const std::string& folder) {
  const std::string path = data_file_of(folder);
  std::error_code failed;
  if (!std::filesystem::exists(path, failed) && !failed) return std::nullopt;
  json content = parse_shallow_json(read_file(path));
  if (!content.is_object()) refuse_data_file(path, "is damaged: it is not a JSON object");
  const json schema = content.value("schema", json());
  if (!schema.is_number_integer()) refuse_data_file(path, "is damaged: it has no schema");
  require_schema(content, {1, kDataSchema}, path, "train the run again");
  try {
    const std::string checksum = content.at("checksum");
    content.erase("checksum");
    if (checksum != text_fingerprint(content.dump()))
      refuse_data_file(path, "was changed since the run wrote it: its checksum differs");
    RunData data = run_data_in(content);
    check_sizes(data);
    return data;
  } catch (const json::exception&) {
    refuse_data_file(path, "is damaged: a value is missing or of another type than it should be");
  } catch (const Impossible& error) {
    refuse_data_file(path, fmt::format("is damaged: {}", error.problem));
  }
}

void require_same_data(const RunData& trained_on, const Job& job, const Data& data) {
  const bool other_samples = contents_fingerprint(*data.dataset) != trained_on.contents;
  if (!other_samples && split_fingerprint(data.splits) == trained_on.split) return;
  const std::vector<std::string> files = data_files(job.task.data, job.base_dir);
  const std::string what = files.empty() ? fmt::format("task.data = {}", job.task.data.kind())
                                         : fmt::format("{}", fmt::join(files, ", "));
  throw DataError(fmt::format(
      "{}: {} that the run was trained on, so its test samples are not there; put the data of the "
      "run back, or give the samples to predict with --data",
      what, other_samples ? "is not the data" : "is split in another way than the data"));
}

}  // namespace tutti
