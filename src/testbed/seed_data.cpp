#include "testbed/seed_data.h"

#include "data/data_config.h"

namespace tutti {

Data data_of_seed(const Job& job, const Data& loaded) {
  const DataConfig& config = job.task.data;
  if (!data_entry(config.kind()).generated) return loaded;
  return load_data(config, job.task.seed, job.base_dir);
}

}  // namespace tutti
