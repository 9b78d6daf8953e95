#include "data/data_config.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "core/error.h"
#include "data/paths.h"
#include "data/readers.h"
#include "data/standardise.h"
#include "data/table.h"

namespace tutti {
namespace {

// Describes the features as they are in the file. Sparse samples are not made dense for that.
std::optional<FeatureSpread> look_at(const Dataset& dataset, const Splits& splits) {
  constexpr int64_t kMostLookedAt = 1 << 20;
  if (dataset.sample_shape()[0] > kMostLookedAt) return {};
  const auto rows = dataset.with_sparse_rows();
  return rows ? spread_of_rows(*rows, splits.train)
              : spread_of(moments_of(dataset, splits.train));
}

}  // namespace

Scaling DataKind::byte_scaling() const { return {}; }

double validation_share(const DataConfig& config) {
  return config.validation >= 0 ? config.validation : config.source.entry().validation;
}

void visit(Visitor& v, DataConfig& c) {
  c.source->visit(v);
  c.validation = validation_share(c);
  v.field("validation", c.validation, kFraction,
          "share of the training samples kept for measuring the target");
  if (!c.source.entry().folder)
    v.field("test", c.test, kFraction, "share of all samples kept for the final quality");
  v.field("limit", c.limit, kNotNegative, "use only the first samples of each split; 0: all");
}

void complete_paths(DataConfig& config, const std::string& base_dir) {
  for (std::string* path : config.source->paths()) *path = complete_path(*path, base_dir);
}

void move_to(DataConfig& config, const std::string& directory) {
  const std::filesystem::path folder(directory);
  for (std::string* path : config.source->paths())
    if (config.source.entry().folder)
      *path = directory;
    else if (!path->empty())
      *path = (folder / std::filesystem::path(*path).filename()).string();
}

std::string path_of(const DataConfig& config) {
  DataConfig copy = config;
  const std::vector<std::string*> paths = copy.source->paths();
  return paths.empty() ? "" : *paths.front();
}

std::vector<std::string> data_files(const DataConfig& config, const std::string& base_dir) {
  DataConfig c = config;
  complete_paths(c, base_dir);
  if (c.source.entry().folder) return c.source->folder_files();
  std::vector<std::string> files;
  for (const std::string* path : c.source->paths())
    if (!path->empty()) files.push_back(*path);
  return files;
}

Data load_data(const DataConfig& config, uint64_t seed, const std::string& base_dir) {
  DataConfig c = config;
  complete_paths(c, base_dir);
  const DataEntry& entry = c.source.entry();
  if (!entry.folder && !entry.generated && path_of(c).empty())
    throw ConfigError(
        "task.data.path",
        fmt::format("task.data.path is missing: {} data is read from a file", entry.name));
  Source source = c.source->read(seed);
  Splits splits = make_splits(source, c);
  switch (c.source->feature_kind()) {
    case FeatureKind::kFixed:
      return {std::move(source.dataset), std::move(splits)};
    case FeatureKind::kNumbers: {
      const auto spread = look_at(*source.dataset, splits);
      return {std::move(source.dataset), std::move(splits), spread};
    }
    case FeatureKind::kStandardised:
      break;
  }
  const Moments moments = moments_of(*source.dataset, splits.train);
  FeatureSpread spread = spread_of(moments);
  spread.standardised = true;
  return {standardised(std::move(source.dataset), moments), std::move(splits), spread};
}

}  // namespace tutti
