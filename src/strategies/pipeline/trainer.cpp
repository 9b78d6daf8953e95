#include "strategies/pipeline/trainer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/bytes.h"
#include "core/error.h"
#include "fabric/exchange.h"
#include "models/shard.h"
#include "models/slice.h"
#include "strategies/compute.h"
#include "strategies/pipeline/shard_costs.h"

namespace tutti {
namespace {

// Parts of tags of purpose kControl.
enum class PipelinePart : uint64_t { kLoss, kBusy };  // of purpose kControl

std::span<std::byte> bytes_in(double& value) {
  return writable_bytes_of(std::span<double>(&value, 1));
}

}  // namespace

PipelineTrainer::PipelineTrainer(Context& context, const Placement& placement,
                                 const PipelineConfig& config, Outside outside)
    : context_(context),
      placement_(placement),
      outside_(std::move(outside)),
      replica_(placement.replica_of(context.node.endpoint().rank())),
      node_(placement.node_of(context.node.endpoint().rank())),
      shard_(placement.shard_of(context.node.endpoint().rank())),
      tasks_(schedule_tasks(placement.schedule, placement.shape(replica_), node_)) {
  for (const size_t stage : placement.shape(replica_).stages_of(node_))
    workers_.push_back(std::make_unique<StageWorker>(
        context, placement, config, outside_.make_update, replica_, node_, stage, shard_));
}

Tag PipelineTrainer::loss_tag(uint64_t step) {
  return {Purpose::kControl, Tag::wrapped(step), PipelinePart::kLoss};
}

bool PipelineTrainer::has_last_stage() const { return workers_.back()->is_last(); }

// Each sample goes through all stages and shards, so only one of them counts it.
bool PipelineTrainer::counts_samples() const { return has_last_stage() && shard_ == 0; }

double PipelineTrainer::busy_s() const {
  return context_.watch.seconds(Phase::kCompute) + context_.watch.seconds(Phase::kAggregate);
}

StepLoss PipelineTrainer::take_step(const Batches& batches, const StepAhead& next) {
  const double began_s = context_.node.clock().now(), busy_before_s = busy_s();
  const size_t count =
      placement_.asynchronous() ? pass_on(batches, next) : pass_batch(batches, next);
  const double loss = share_loss(next.number);
  if (!std::isfinite(loss)) throw diverged_at(next.number);
  for (const auto& worker : workers_) worker->share_gradient();
  for (const auto& worker : workers_) worker->update(next.rate);
  context_.watch.enter(context_.watch.enter(Phase::kOther));  // brings its sums up to date
  busy_s_ += busy_s() - busy_before_s;
  steps_s_ += context_.node.clock().now() - began_s;
  return mean_loss(loss, count);
}

// The micro-batches of one batch, forward and backward. Those that another copy of the stage
// computes have no samples here. Returns the samples of this replica.
size_t PipelineTrainer::pass_batch(const Batches& batches, const StepAhead& next) {
  const Range mine = placement_.micro_batches_of(replica_);
  PassPlan plan{.samples = {},
                .step = next.number,
                .scale = 1.0F / static_cast<float>(batches.count(next.step)),
                .training = true};
  const PipelineShape shape = placement_.shape(replica_);
  size_t count = 0;
  for (size_t micro = mine.begin; micro < mine.end; ++micro) {
    const auto samples = batches.lane(next.step, static_cast<int64_t>(micro),
                                      static_cast<int64_t>(placement_.micro_batches));
    const bool own = shape.computes(node_, micro - mine.begin);
    if (own && counts_samples()) context_.recorder.trained(samples.size());
    plan.samples.push_back(own ? samples : std::span<const uint32_t>{});
    count += samples.size();
  }
  run(tasks_, plan);
  return count;
}

// One batch comes back; those behind it have been sent on their way, so that all nodes are busy.
// The order is that of 1f1b, and with it what each update is made of: asynchronous, but the same
// however fast the nodes are. Before a measurement the pipeline runs empty.
size_t PipelineTrainer::pass_on(const Batches& batches, const StepAhead& next) {
  StageWorker& worker = *workers_.front();
  if (returned_ == under_way_.samples.size()) {
    under_way_ = {.samples = {}, .step = next.number, .scale = 1, .training = true};
    for (int64_t i = 0; i <= next.followers; ++i)
      under_way_.samples.push_back(batches.share(next.step + i, 0));
    sent_ = returned_ = 0;
    worker.begin(under_way_);
  }
  const size_t ahead = placement_.nodes - node_;
  for (; sent_ < std::min(under_way_.samples.size(), returned_ + ahead); ++sent_)
    worker.forward(sent_);
  worker.backward(returned_);
  const size_t count = under_way_.samples[returned_].size();
  if (counts_samples()) context_.recorder.trained(count);
  if (++returned_ == under_way_.samples.size()) worker.end();
  return count;
}

void PipelineTrainer::run(const std::vector<StageTask>& tasks, const PassPlan& plan) {
  for (const auto& worker : workers_) worker->begin(plan);
  for (const StageTask& task : tasks)
    task.backward ? worker(task.stage).backward(task.micro_batch)
                  : worker(task.stage).forward(task.micro_batch);
  for (const auto& worker : workers_) worker->end();
}

std::vector<Rank> PipelineTrainer::last_ranks() const {
  const size_t last = placement_.stages.size() - 1;
  std::vector<Rank> ranks;
  for (size_t copy = 0; copy < placement_.shape(replica_).copies_of(last); ++copy)
    ranks.push_back(placement_.rank_of(replica_, last, shard_, copy));
  return ranks;
}

std::vector<Rank> PipelineTrainer::ranks_before_last() const {
  const std::vector<Rank> last = last_ranks();
  std::vector<Rank> ranks;
  for (size_t node = 0; node < placement_.nodes; ++node) {
    const auto rank =
        static_cast<Rank>((replica_ * placement_.nodes + node) * placement_.shards + shard_);
    if (std::find(last.begin(), last.end(), rank) == last.end()) ranks.push_back(rank);
  }
  return ranks;
}

// Only the last stage knows the loss, each of its shards the same, each of its copies a part. It
// leaves there while the others still go back, so that they do not wait for it.
double PipelineTrainer::share_loss(uint64_t step) {
  const Tag tag = loss_tag(step);
  const Rank me = context_.node.endpoint().rank();
  const std::vector<Rank> last = last_ranks();
  double own = workers_.back()->take_loss();
  PhaseScope scope(context_.watch, Phase::kCommunicate);
  if (has_last_stage()) {
    for (const Rank rank : ranks_before_last()) send(context_.node, rank, tag, bytes_in(own));
    for (const Rank rank : last)
      if (rank != me) send(context_.node, rank, tag, bytes_in(own));
  }
  double loss = 0;  // added in one order, so that all have the same
  for (const Rank rank : last) {
    double part = own;
    if (rank != me) receive(context_.node, rank, tag, bytes_in(part));
    loss += part;
  }
  if (me == last.front()) tell_listeners(tag, bytes_in(loss));
  return loss;
}

void PipelineTrainer::tell_listeners(Tag tag, std::span<const std::byte> bytes) {
  for (const Rank rank : outside_.listeners) send(context_.node, rank, tag, bytes);
}

Quality PipelineTrainer::validate(Tag tag) {
  const std::span<const uint32_t> samples = context_.data.splits.validation;
  PassPlan plan{.samples = {}, .step = tag.step(), .scale = 1, .training = false};
  PipelineShape shape = placement_.shape(replica_);
  for (size_t chunk = replica_; chunk < evaluation_chunks(samples.size());
       chunk += placement_.replicas)
    plan.samples.push_back(shape.computes(node_, plan.samples.size())
                               ? samples_of_chunks(samples, chunk, chunk + 1)
                               : std::span<const uint32_t>{});
  shape.micro_batches = plan.samples.size();
  run(forward_tasks(shape, node_), plan);
  EvaluationSums sums = workers_.back()->evaluation();
  share_sums(sums, tag);
  return quality_of(context_, sums, samples.size());
}

// Among the last stages of all replicas, and from each to its own pipeline.
void PipelineTrainer::share_sums(EvaluationSums& sums, Tag tag) {
  const Rank me = context_.node.endpoint().rank();
  const Group holders = placement_.holders(placement_.stages.size() - 1, shard_, me);
  if (has_last_stage() && holders.size() > 1) add_among(context_, holders, sums, tag);
  PhaseScope scope(context_.watch, Phase::kCommunicate);
  const Rank speaker = last_ranks().front();
  if (!has_last_stage())
    receive(context_.node, speaker, tag, sums.bytes());
  else if (me == speaker)
    for (const Rank rank : ranks_before_last()) send(context_.node, rank, tag, sums.bytes());
  if (me == speaker) tell_listeners(tag, sums.bytes());
}

void PipelineTrainer::gather() {
  PhaseScope scope(context_.watch, Phase::kCommunicate);
  if (context_.node.endpoint().rank() == 0) {
    workers_.clear();  // their memory goes before that of all parameters comes
    context_.model.make_whole();
  }
  for (size_t stage = 0; stage < placement_.stages.size(); ++stage)
    placement_.shards == 1 ? gather_stage(stage) : gather_shards(stage);
  report_stages();
}

void PipelineTrainer::gather_stage(size_t stage) {
  const Rank me = context_.node.endpoint().rank(), owner = placement_.rank_of(0, stage, 0);
  if (owner == 0 || (me != 0 && me != owner)) return;
  const Tag tag(Purpose::kParameters, 0, stage);
  const std::span<float> values = context_.model.parameters_of(placement_.stages[stage]);
  if (me == owner)
    send(context_.node, 0, tag, bytes_of(std::span<const float>(values)));
  else
    receive(context_.node, owner, tag, writable_bytes_of(values));
}

// Shards have memory of their own. What is not split comes from each of them, as the same bits.
void PipelineTrainer::gather_shards(size_t stage) {
  const Rank me = context_.node.endpoint().rank();
  const Tag tag(Purpose::kParameters, 0, stage);
  const Architecture whole = stage_of(context_.model.architecture(), placement_.stages[stage]);
  for (size_t shard = 0; shard < placement_.shards; ++shard) {
    const Rank owner = placement_.rank_of(0, stage, shard);
    if (owner == 0 || (me != 0 && me != owner)) continue;
    if (me == owner) {
      const std::span<const float> own = worker(stage).model().parameters();
      send(context_.node, 0, tag, bytes_of(own));
      continue;
    }
    const Architecture part = shard_of(whole, shard, placement_.shards);
    Buffer<float> arrived(part.parameter_count);
    receive(context_.node, owner, tag, writable_bytes_of(arrived.span()));
    context_.arithmetic().perform([&] {
      paste_shard(part, arrived.span(), whole,
                  context_.model.parameters_of(placement_.stages[stage]));
    });
  }
}

// A row for each node of the first replica, in the run record. The last stages are through with a
// step before the first ones are: all are measured by the time of the node that takes longest.
void PipelineTrainer::report_stages() {
  const Tag tag(Purpose::kControl, 0, PipelinePart::kBusy);
  std::array<double, 2> own{busy_s_, steps_s_};
  const auto bytes = writable_bytes_of(std::span<double>(own));
  if (replica_ > 0) return;
  if (node_ > 0 || shard_ > 0) return send(context_.node, 0, tag, bytes);
  Extra::Table table{.columns = {"node", "stages", "parameters", "flops", "busy_s", "idle_share"},
                     .rows = {}};
  double busy_s = 0, longest_s = 0;
  const size_t nodes = placement_.nodes * placement_.shards;
  for (Rank rank = 0; rank < static_cast<Rank>(nodes); ++rank) {
    if (rank > 0) receive(context_.node, rank, tag, bytes);
    double parameters = 0, flops = 0, stages = 0;
    for (const size_t s : placement_.shape(0).stages_of(placement_.node_of(rank))) {
      ++stages;
      const Architecture part =
          part_of_stage(placement_, context_.model.architecture(), s, placement_.shard_of(rank));
      parameters += static_cast<double>(part.parameter_count);
      flops += part.training_flops();
    }
    table.rows.push_back({static_cast<double>(rank), stages, parameters, flops, own[0], 0});
    busy_s += own[0];
    longest_s = std::max(longest_s, own[1]);
  }
  if (longest_s == 0) return;  // on a clock that did not move
  for (std::vector<double>& row : table.rows) row.back() = 1 - row[4] / longest_s;
  context_.recorder.table("pipeline", std::move(table));
  const bool only_shards = placement_.stages.size() == 1 && placement_.shards > 1;
  context_.recorder.figure(only_shards ? "shards_idle" : "pipeline_bubble",
                           1 - busy_s / (longest_s * static_cast<double>(nodes)));
}

}  // namespace tutti
