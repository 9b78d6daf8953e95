#include "data/data_sizes.h"

#include "data/fingerprint.h"

namespace tutti {

DataSizes sizes_of(const Data& data) {
  return {.counted = true,
          .train = data.splits.train.size(),
          .validation = data.splits.validation.size(),
          .test = data.splits.test.size(),
          .sample_shape = data.dataset->sample_shape(),
          .classes = data.dataset->classes(),
          .answers_per_sample = data.dataset->answers_per_sample(),
          .contents = [&data] { return contents_fingerprint(*data.dataset); },
          .split = [&data] { return split_fingerprint(data.splits); }};
}

}  // namespace tutti
