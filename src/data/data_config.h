// [task] data: a kind of data out of the catalog with its settings, and what is read by them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/chosen.h"
#include "data/dataset.h"

namespace tutti {

struct DataDescription;
struct PredictionData;
struct Scaling;
struct Source;

// What the features of a kind are.
enum class FeatureKind {
  kFixed,        // scales that the kind itself decides: pixels, characters, generated numbers
  kNumbers,      // numbers of a file, with units: they are looked at and left as they are
  kStandardised  // the same, scaled to mean 0 and deviation 1
};

// One kind of data with its settings.
class DataKind {
 public:
  virtual ~DataKind() = default;
  virtual void visit(Visitor& visitor) = 0;  // its keys: all but `kind` and those of every kind
  // Its settings that name files, or the folder of its files; the one that must be given first.
  virtual std::vector<std::string*> paths() { return {}; }
  // The files in its folder, if that is what its path is.
  virtual std::vector<std::string> folder_files() const { return {}; }
  virtual bool predicts_numbers() const { return false; }  // as far as settings tell
  virtual FeatureKind feature_kind() const { return FeatureKind::kFixed; }
  // How the bytes of its files become features.
  virtual Scaling byte_scaling() const;
  // Reads (or generates) all samples. The paths are complete.
  virtual Source read(uint64_t seed) const = 0;
  // Reads samples to predict, with the classes, names and scales of the training data.
  virtual PredictionData read_like(const DataDescription& trained_on, const std::string& path,
                                   const std::string& labels_path) const = 0;
};

struct DataEntry {
  using Kind = DataKind;
  std::string_view name;
  std::string_view summary;
  std::string_view title;  // in a sentence, where no file names the data
  Cloned<DataKind> (*make)();
  bool folder = false;        // files of known names in a folder, with a test set of its own
  bool generated = false;     // out of the seed: there are no files
  bool labels_apart = false;  // the labels lie in a file of their own
  double validation = 0.1;    // share of the training samples kept for measuring the target
};
const std::vector<DataEntry>& data_catalog();
// Throws ConfigError with the nearest name when there is no such kind.
const DataEntry& data_entry(std::string_view name);

// [task] data = "fashion-mnist", or a table with a kind and these settings.
struct DataConfig {
  explicit DataConfig(std::string_view kind = "fashion-mnist") : source(data_entry(kind)) {}
  std::string_view kind() const { return source.name(); }

  Chosen<DataEntry> source;
  double validation = -1;  // negative: the share of the kind
  double test = 0.1;       // share kept for the final quality where the data brings no test set
  int64_t limit = 0;       // use only the first samples of each split; 0: all
};

void visit(Visitor& visitor, DataConfig& config);  // all keys but `kind`

// Reads (or generates) the data. `base_dir` is where relative paths start. Synthetic data depends
// on `seed`; the split is the same for every seed, so that runs with several seeds compare. Throws
// DataError or ConfigError naming file and key.
Data load_data(const DataConfig& config, uint64_t seed, const std::string& base_dir);

// Makes all paths of the settings absolute; relative ones start at `base_dir`.
void complete_paths(DataConfig& config, const std::string& base_dir);
// Lets the settings name the same files in the folder `directory`.
void move_to(DataConfig& config, const std::string& directory);
// Its file, or the folder of its files, as the settings say. Empty: none.
std::string path_of(const DataConfig& config);
// The files that load_data would read, whether they exist or not.
std::vector<std::string> data_files(const DataConfig& config, const std::string& base_dir);
// Whether the data is a regression, as far as the settings tell without reading it.
inline bool predicts_numbers(const DataConfig& config) { return config.source->predicts_numbers(); }

}  // namespace tutti
