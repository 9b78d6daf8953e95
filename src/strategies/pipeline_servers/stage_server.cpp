#include "strategies/pipeline_servers/stage_server.h"

#include <fmt/format.h>

#include <cmath>

#include "core/error.h"
#include "fabric/exchange.h"
#include "models/stage.h"
#include "strategies/compute.h"
#include "strategies/evaluation.h"
#include "strategies/gradient_sum.h"
#include "strategies/parameter_layout.h"
#include "strategies/pipeline/trainer.h"

namespace tutti {

StageServer::StageServer(Context& context, const Placement& placement, const PipelineConfig& config)
    : context_(context),
      speaker_(placement.rank_of(0, placement.stages.size() - 1, 0)),
      exact_(sum_kind(context.task) == SumKind::kExact) {
  const auto own = static_cast<size_t>(context.node.endpoint().rank() - context.plan.workers);
  const Range stages = stages_on_server(placement, config, own);
  for (size_t stage = stages.begin; stage < stages.end; ++stage)
    served_.push_back(serve(context.model.architecture(), placement, stage));
}

StageServer::Served StageServer::serve(const Architecture& whole, const Placement& placement,
                                       size_t stage) {
  const Architecture part = stage_of(whole, placement.stages[stage]);
  const size_t count = part.parameter_count;
  Served served;
  served.stage = stage;
  served.holders = placement.holders(stage, 0).ranks;
  served.layout = layout_of(part);
  served.optimizer = make_optimizer(context_.optimizer, served.layout);
  served.parameters = Buffer<float>(count);
  context_.model.initial_values({part.place.value, part.place.value + count},
                                served.parameters.span());
  if (exact_) served.rounded = Buffer<float>(count);
  for (size_t holder = 0; holder < served.holders.size(); ++holder)
    served.gradients.emplace_back(sum_kind(context_.task), count, context_.arithmetic());
  served.arriving.resize(served.holders.size());
  served.leaving.resize(served.holders.size());
  return served;
}

// The last stage sends its gradient first, and the first stage last.
StepLoss StageServer::take_step(const Batches& batches, const StepAhead& next) {
  for (Served& served : served_) expect(served, next.number);
  const double loss = hear_loss(next.number);
  if (!std::isfinite(loss)) throw diverged_at(next.number);
  for (size_t i = served_.size(); i-- > 0;) {
    Served& served = served_[i];
    await(served);
    finish_sends(served);
    update(served, next.rate);
    send(served, next.number);
  }
  return mean_loss(loss, static_cast<size_t>(batches.count(next.step)));
}

double StageServer::hear_loss(uint64_t step) {
  double loss = 0;
  PhaseScope scope(context_.watch, Phase::kWait);
  receive(context_.node, speaker_, PipelineTrainer::loss_tag(step),
          writable_bytes_of(std::span<double>(&loss, 1)));
  return loss;
}

void StageServer::expect(Served& served, uint64_t step) {
  for (size_t i = 0; i < served.holders.size(); ++i)
    served.arriving[i] = context_.node.endpoint().receive(
        served.holders[i], Tag(Purpose::kGradient, Tag::wrapped(step), served.stage),
        served.gradients[i].landing());
}

void StageServer::await(Served& served) {
  PhaseScope scope(context_.watch, Phase::kWait);
  for (size_t i = 0; i < served.holders.size(); ++i) {
    const Rank holder = served.holders[i];
    try {
      const size_t bytes = finish(context_.node, served.arriving[i]);
      const size_t all = served.gradients[i].bytes().size();
      if (bytes != all)
        throw FabricError(FabricError::Kind::kProtocol, holder,
                          fmt::format("{} bytes came instead of {}", bytes, all));
    } catch (const FabricError& error) {
      throw FabricError(error.kind(), error.peer(),
                        fmt::format("waiting for the gradient of stage {} from rank {}: {}",
                                    served.stage, holder, error.what()));
    }
  }
}

// Added in the order of the ranks, so that it is the same sum on every fabric.
std::span<const float> StageServer::sum(Served& served) {
  const size_t count = served.parameters.size(), holders = served.holders.size();
  if (holders > 1 || exact_)
    context_.node.clock().charge(
        {.flops = 0,
         .memory_bytes = static_cast<double>(holders + 1) *
                         static_cast<double>(count * sum_element_bytes(context_.task))});
  Sum& all = served.gradients.front();
  for (size_t holder = 1; holder < holders; ++holder) all.add(served.gradients[holder]);
  return all.values(served.rounded.span());
}

void StageServer::update(Served& served, double rate) {
  PhaseScope scope(context_.watch, Phase::kAggregate);
  const std::span<const float> gradient = sum(served);
  update_parameters(context_, served.layout, *served.optimizer, served.parameters.span(), gradient,
                    rate);
}

void StageServer::send(Served& served, uint64_t step) {
  PhaseScope scope(context_.watch, Phase::kCommunicate);
  for (size_t i = 0; i < served.holders.size(); ++i)
    served.leaving[i] = context_.node.endpoint().send(
        served.holders[i], Tag(Purpose::kParameters, Tag::wrapped(step), served.stage),
        bytes_of(std::span<const float>(served.parameters.span())));
}

// Parameters stay as they are until they have left.
void StageServer::finish_sends(Served& served) {
  PhaseScope scope(context_.watch, Phase::kCommunicate);
  for (Handle& handle : served.leaving)
    if (handle.pending()) finish(context_.node, handle);
}

void StageServer::finish_sends() {
  for (Served& served : served_) finish_sends(served);
}

Quality StageServer::validate(Tag tag) {
  EvaluationSums sums;
  PhaseScope scope(context_.watch, Phase::kWait);
  receive(context_.node, speaker_, tag, sums.bytes());
  return quality_of(context_, sums, context_.data.splits.validation.size());
}

}  // namespace tutti
