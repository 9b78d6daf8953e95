// A worker that trains a sparse model: it is told what to compute, pulls the rows that this
// touches, and pushes their gradients. It holds no other row, and no other ever travels, until the
// end: then it gets those that the data touches, or all if that is little.
//
// Rows are read after the hand is known, not with it, so a pull names its keys; everything else is
// as for dense models, in every consistency model.
#pragma once

#include <optional>
#include <vector>

#include "models/sparse_model.h"
#include "strategies/parameter_server/worker.h"

namespace tutti::parameter_server {

class RowWorker : public Worker {
 public:
  RowWorker(Context& context, const Config& config);

 private:
  // What travels between this worker and one server.
  struct Parcel {
    std::vector<uint64_t> keys;
    std::vector<float> pulled;
    std::vector<std::byte> pushed;
  };
  void commit() override {}
  void compute(const Hand& hand) override;
  void read_for(const EvaluationTask& task, uint32_t flags) override;
  void take_final() override;

  std::vector<uint32_t> samples_at(const LocalWorker::Place& place);
  void touch(std::span<const uint32_t> samples);  // gathers them; keys_ become what they touch
  void pull_rows(uint32_t flags, int64_t wanted, int64_t snapshot = 0);
  // The same into these rows, in the order of keys_.
  void pull_rows_to(std::span<float> rows, uint32_t flags, int64_t wanted, int64_t snapshot);
  std::span<float> hold(std::span<const uint64_t> keys);
  std::vector<uint64_t> final_keys();
  void ask_for_rows(size_t server, uint32_t flags, int64_t wanted, int64_t snapshot);
  LocalWorker::Result gradient(const LocalWorker::Place& place, uint64_t step_number);
  double lane_gradient(std::span<const uint32_t> samples, uint64_t step_number, float scale);
  void add_lane();
  void push_rows();
  Range lanes_of(const LocalWorker::Place& place) const {
    return part_of(static_cast<size_t>(context_.task.lanes), static_cast<size_t>(place.parts),
                   static_cast<size_t>(place.part));
  }
  void charge_rows(double passes);

  const size_t width_;
  SparseModel* model_;  // nullptr when only costs count
  Batch batch_;
  std::vector<uint64_t> keys_, lane_keys_;
  std::optional<Sum> row_sum_;                    // task.deterministic; of keys_
  std::vector<std::vector<uint32_t>> positions_;  // in keys_, of each parcel
  std::vector<Parcel> parcels_;
};

}  // namespace tutti::parameter_server
