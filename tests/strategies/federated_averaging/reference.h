// Federated learning of a linear model in plain double arithmetic, for hand computations: nothing
// of the engine but which client holds which samples and takes them in which order.
#pragma once

#include "strategies/federated_averaging/client_training.h"
#include "tests/support/linear_reference.h"

namespace tutti::testing_support {

inline Settings federated(const Settings& more) {
  return linear_task() +
         Settings{"strategy.kind=federated_averaging",
                  "strategy.clients=3",
                  "strategy.client_batch=8",
                  "task.max_steps=2",
                  "task.epochs=1000",
                  "cluster.fabric=virtual",
                  "cluster.workers=2"} +
         more;
}

class FederatedReference {
 public:
  FederatedReference(const Settings& settings, const ClientSplitConfig& split, int64_t clients,
                     int64_t batch)
      : job_(load_job("", settings)),
        data_(load_data(job_.task.data, job_.task.seed, job_.base_dir)),
        split_(split_clients(data_, split, clients, job_.task.seed)) {
    for (int64_t client = 0; client < clients; ++client)
      batches_.emplace_back(split_.of(static_cast<size_t>(client)), batch, client, job_.task.seed,
                            true);
  }

  Vector initial() const {
    const Architecture architecture = architecture_of(job_, data_);
    std::vector<float> values(architecture.parameter_count);
    initialise(architecture, job_.task.seed, values);
    return {values.begin(), values.end()};
  }
  double samples(size_t client) const { return static_cast<double>(split_.of(client).size()); }
  int64_t steps_per_epoch(size_t client) const { return batches_[client].steps_per_epoch(); }
  // The mean over batch `step` of the client.
  Vector gradient(size_t client, int64_t step, const Vector& x) {
    Batch batch;
    data_.dataset->gather(batches_[client].at(step), batch);
    return linear_gradient(batch, x, 1.0 / static_cast<double>(batch.size()));
  }

 private:
  Job job_;
  Data data_;
  ClientSplit split_;
  std::vector<federated_averaging::ClientBatches> batches_;
};

}  // namespace tutti::testing_support
