// Every kind of data there is. To add one: a file beside this one, and a line here.
#include <fmt/format.h>

#include "core/error.h"
#include "data/cifar10.h"
#include "data/csv.h"
#include "data/fann.h"
#include "data/fashion_mnist.h"
#include "data/idx.h"
#include "data/libsvm.h"
#include "data/ratings.h"
#include "data/series.h"
#include "data/synthetic.h"
#include "data/synthetic_ratings.h"
#include "data/text.h"
#include "data/tokens.h"

namespace tutti {
namespace {

template <class Kind>
constexpr auto kData = with_defaults<DataKind, Kind>;

}  // namespace

const std::vector<DataEntry>& data_catalog() {
  static const std::vector<DataEntry> catalog = {
      {.name = "fashion-mnist",
       .summary = "28x28 images of clothing, 10 classes, 60,000 + 10,000 (Debian package)",
       .title = "Fashion-MNIST",
       .make = kData<FashionMnistData>,
       .folder = true,
       .labels_apart = true,
       .validation = 1.0 / 12},
      {.name = "idx",
       .summary = "images or vectors and labels in two IDX files, the format of MNIST",
       .title = "images in IDX files",
       .make = kData<IdxData>,
       .labels_apart = true},
      {.name = "cifar10",
       .summary = "32x32 colour images, 10 classes, 50,000 + 10,000 (scripts/fetch-cifar10)",
       .title = "CIFAR-10",
       .make = kData<Cifar10Data>,
       .folder = true},
      {.name = "csv",
       .summary = "a table of numbers with a column to predict",
       .title = "a table",
       .make = kData<CsvData>},
      {.name = "libsvm",
       .summary = "sparse rows `label index:value ...`, the format of LIBSVM",
       .title = "sparse rows",
       .make = kData<LibsvmData>},
      {.name = "ratings",
       .summary = "lines `user item rating`, by commas, tabs or spaces; for factorization",
       .title = "ratings",
       .make = kData<RatingsData>},
      {.name = "fann",
       .summary = "inputs and outputs as text, the format of the FANN library",
       .title = "a table",
       .make = kData<FannData>},
      {.name = "series",
       .summary = "a time series in a CSV file: the rows before predict the next",
       .title = "a time series",
       .make = kData<SeriesData>},
      {.name = "text",
       .summary = "plain text: the characters before predict the next",
       .title = "text",
       .make = kData<TextData>},
      {.name = "tokens",
       .summary = "plain text as sequences that predict at every position; for transformer",
       .title = "text",
       .make = kData<TokensData>},
      {.name = "synthetic-linear",
       .summary = "normal features, target w.x + b + noise with known w and b",
       .title = "synthetic numbers",
       .make = kData<SyntheticLinearData>,
       .generated = true},
      {.name = "synthetic-classes",
       .summary = "normal clouds around a centre per class",
       .title = "synthetic classes",
       .make = kData<SyntheticClassesData>,
       .generated = true},
      {.name = "synthetic-ratings",
       .summary = "entries of a matrix of low rank, with noise; for factorization",
       .title = "synthetic ratings",
       .make = kData<SyntheticRatingsData>,
       .generated = true},
  };
  return catalog;
}

const DataEntry& data_entry(std::string_view name) {
  if (const DataEntry* entry = find_entry(data_catalog(), name)) return *entry;
  throw ConfigError("task.data", fmt::format("there is no data '{}'; did you mean '{}'? See "
                                             "`tutti list data`",
                                             name, nearest(name, names_of(data_catalog()))));
}

}  // namespace tutti
