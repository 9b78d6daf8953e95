#include "strategies/parameter_server/row_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "core/error.h"
#include "sparse/keys.h"
#include "strategies/compute.h"
#include "strategies/evaluation.h"
#include "strategies/gradient_sum.h"
#include "strategies/parameter_server/entry.h"

namespace tutti::parameter_server {
namespace {

// The final rows come in parts, so that nobody needs memory for all of them twice.
constexpr size_t kFinalKeys = 1 << 18;
constexpr size_t kFinalSamples = 1 << 14;

}  // namespace

RowWorker::RowWorker(Context& context, const Config& config)
    : Worker(context, config),
      width_(context.model.architecture().row_width),
      model_(dynamic_cast<SparseModel*>(&context.model.whole())),
      parcels_(links_.size()) {
  TUTTI_CHECK(model_ || !context.arithmetic().is_done());
  terms_.want_headers_alone();
}

// Those of its part of the batch; in lanes, of its lanes, which are cut elsewhere.
std::vector<uint32_t> RowWorker::samples_at(const LocalWorker::Place& place) {
  if (!context_.task.deterministic) {
    const auto part = local_.samples_of(place);
    return {part.begin(), part.end()};
  }
  std::vector<uint32_t> samples;
  const Range lanes = lanes_of(place);
  for (size_t lane = lanes.begin; lane < lanes.end; ++lane) {
    const auto more = local_.lane_of(place, lane);
    samples.insert(samples.end(), more.begin(), more.end());
  }
  return samples;
}

void RowWorker::touch(std::span<const uint32_t> samples) {
  context_.data.dataset->gather(samples, batch_);
  touched_rows(context_.model.architecture(), batch_, keys_);
}

void RowWorker::compute(const Hand& hand) {
  context_.node.clock().begin_step();
  const LocalWorker::Place place = place_of(hand);
  accrued_.begin(hand, local_.samples_in(place));
  touch(samples_at(place));
  pull_rows(0, terms_.collects() ? coordinator().reply().version : 0);
  for (Link& link : links_) use(link);
  terms_.begin();
  const LocalWorker::Result result = gradient(place, number_of(hand));
  push_rows();
  accrued_.clear();
  rows_.note(result, timetable_.rate(hand.epoch, hand.step));
}

void RowWorker::ask_for_rows(size_t server, uint32_t flags, int64_t wanted, int64_t snapshot) {
  Parcel& parcel = parcels_[server];
  Link& link = links_[server];
  Request request;
  request.flags = Request::kPull | Request::kRows | flags;
  request.bound = terms_.bound();
  request.wanted = wanted;
  request.share.id = snapshot;
  request.keys = static_cast<int32_t>(parcel.keys.size());
  link.expect(parcel.pulled);
  link.request(request);
  link.send_keys(parcel.keys);
}

// Memory for these rows in the model; nothing when only costs count.
std::span<float> RowWorker::hold(std::span<const uint64_t> keys) {
  if (!model_ || keys.empty()) return {};
  model_->hold(keys);
  return model_->parameters();
}

// Brings the rows of keys_ into the model.
void RowWorker::pull_rows(uint32_t flags, int64_t wanted, int64_t snapshot) {
  pull_rows_to(hold(keys_), flags, wanted, snapshot);
}

void RowWorker::pull_rows_to(std::span<float> rows, uint32_t flags, int64_t wanted,
                             int64_t snapshot) {
  links_.finish_sending();
  split_keys(keys_, parcels_.size(), positions_);
  for (size_t server = 0; server < parcels_.size(); ++server) {
    Parcel& parcel = parcels_[server];
    parcel.keys.clear();
    for (const uint32_t i : positions_[server]) parcel.keys.push_back(keys_[i]);
    parcel.pulled.resize(parcel.keys.size() * width_);
    ask_for_rows(server, flags, wanted, snapshot);
  }
  links_.await();
  // Servers close steps one after the other: none may be behind the one that decides.
  while (terms_.collects() && snapshot == 0) {
    const int64_t version = coordinator().reply().version;
    bool all = true;
    for (size_t server = 0; server < parcels_.size(); ++server) {
      if (links_[server].reply().version >= version) continue;
      ask_for_rows(server, flags, version, 0);
      all = false;
    }
    if (all) break;
    links_.await();
  }
  PhaseScope scope(context_.watch, Phase::kCommunicate);
  for (size_t server = 0; server < parcels_.size(); ++server) {
    const Parcel& parcel = parcels_[server];
    if (links_[server].reply().elements != parcel.pulled.size())
      throw FabricError(
          FabricError::Kind::kProtocol, links_[server].server(),
          fmt::format("rank {} sent {} values of rows instead of {}", links_[server].server(),
                      links_[server].reply().elements, parcel.pulled.size()));
    context_.arithmetic().perform([&] {
      for (size_t i = 0; i < parcel.keys.size(); ++i)
        std::copy_n(parcel.pulled.data() + i * width_, width_,
                    rows.data() + positions_[server][i] * width_);
    });
  }
  charge_rows(2);
}

double RowWorker::lane_gradient(std::span<const uint32_t> samples, uint64_t step_number,
                                float scale) {
  PhaseScope scope(context_.watch, Phase::kCompute);
  context_.recorder.trained(samples.size());
  double loss = 0;
  if (model_) {
    batch_.step = step_number;
    context_.data.dataset->gather(samples, batch_);
    touched_rows(context_.model.architecture(), batch_, lane_keys_);
    loss = model_->sparse_gradient(batch_, lane_keys_, scale);
    if (!std::isfinite(loss)) throw diverged_at(step_number);
  }
  const Architecture& architecture = context_.model.architecture();
  context_.node.clock().charge(forward_work(architecture, samples.size()));
  context_.node.clock().charge(backward_work(architecture, samples.size()));
  return loss;
}

// Both lists of keys ascend.
void RowWorker::add_lane() {
  size_t place = 0;
  for (const uint64_t key : lane_keys_) {
    while (keys_[place] != key) ++place;
    row_sum_->add(model_->gradients().subspan(place * width_, width_), place * width_);
  }
}

LocalWorker::Result RowWorker::gradient(const LocalWorker::Place& place, uint64_t step_number) {
  LocalWorker::Result result;
  result.count = local_.count_of(place);
  const auto scale = 1.0f / static_cast<float>(result.count);
  if (!context_.task.deterministic) {
    const auto samples = local_.samples_of(place);
    result.loss = lane_gradient(samples, step_number, scale);
    result.samples = static_cast<int64_t>(samples.size());
  } else {
    // In lanes that do not depend on the number of parts, added up exactly.
    row_sum_.emplace(SumKind::kExact, keys_.size() * width_, context_.arithmetic());
    const Range lanes = lanes_of(place);
    for (size_t lane = lanes.begin; lane < lanes.end; ++lane) {
      const auto samples = local_.lane_of(place, lane);
      if (samples.empty()) continue;
      result.loss += lane_gradient(samples, step_number, scale);
      result.samples += static_cast<int64_t>(samples.size());
      PhaseScope scope(context_.watch, Phase::kAggregate);
      if (model_) add_lane();
      charge_rows(9);
    }
  }
  if (result.samples > 0) result.loss /= static_cast<double>(result.samples);
  return result;
}

void RowWorker::push_rows() {
  PhaseScope scope(context_.watch, Phase::kCommunicate);
  const size_t row = width_ * sum_element_bytes(context_.task);
  std::span<const std::byte> rows;
  if (model_)
    rows = row_sum_ ? row_sum_->bytes() : bytes_of(std::span<const float>(model_->gradients()));
  for (size_t server = 0; server < parcels_.size(); ++server) {
    Parcel& parcel = parcels_[server];
    Link& link = links_[server];
    link.finish_sending();
    parcel.pushed.resize(parcel.keys.size() * row);
    for (size_t i = 0; i < parcel.keys.size() && model_; ++i)
      std::copy_n(rows.data() + positions_[server][i] * row, row, parcel.pushed.data() + i * row);
    Request request = push_request(link, 0);
    if (&link == &coordinator()) request.occupancy = occupancy_.measure();
    request.keys = static_cast<int32_t>(parcel.keys.size());
    link.request(request);
    link.send_keys(parcel.keys);
    if (parcel.keys.empty()) continue;
    link.send_gradients(0, parcel.pushed);
  }
  charge_rows(2);
}

void RowWorker::read_for(const EvaluationTask& task, uint32_t flags) {
  touch(samples_of_chunks(context_.data.splits.validation, task.begin, task.end));
  if (task.on_snapshot) return pull_rows(Request::kSnapshot, 0, task.id);
  pull_rows(flags, terms_.collects() ? coordinator().reply().version : 0);
}

// All rows of a small model, also those that were never touched: whoever has the model now may need
// them. Of a large one those that the data touches.
std::vector<uint64_t> RowWorker::final_keys() {
  const Architecture& architecture = context_.model.architecture();
  std::vector<uint64_t> all, merged;
  if (architecture.parameter_count <= kMostFlat) {
    all.resize(architecture.rows());
    std::iota(all.begin(), all.end(), uint64_t{0});
    return all;
  }
  const size_t samples = context_.data.dataset->size();
  for (size_t begin = 0; begin < samples; begin += kFinalSamples) {
    std::vector<uint32_t> part(std::min(kFinalSamples, samples - begin));
    std::iota(part.begin(), part.end(), static_cast<uint32_t>(begin));
    touch(part);
    merged.clear();
    std::set_union(all.begin(), all.end(), keys_.begin(), keys_.end(), std::back_inserter(merged));
    std::swap(all, merged);
  }
  return all;
}

void RowWorker::take_final() {
  const std::vector<uint64_t> all = final_keys();
  const std::span<float> rows = hold(all);
  for (size_t begin = 0; begin < all.size(); begin += kFinalKeys) {
    const size_t count = std::min(kFinalKeys, all.size() - begin);
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(begin);
    keys_.assign(first, first + static_cast<std::ptrdiff_t>(count));
    pull_rows_to(model_ ? rows.subspan(begin * width_, count * width_) : rows, Request::kFinal, 0,
                 0);
  }
}

void RowWorker::charge_rows(double passes) {
  context_.node.clock().charge(
      {.flops = 0,
       .memory_bytes = passes * static_cast<double>(keys_.size() * width_ * sizeof(float))});
}

}  // namespace tutti::parameter_server
