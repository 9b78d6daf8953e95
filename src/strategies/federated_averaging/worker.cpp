#include "strategies/federated_averaging/worker.h"

#include <fmt/format.h>

#include "core/error.h"
#include "fabric/exchange.h"
#include "strategies/averaging.h"
#include "strategies/shared_evaluation.h"

namespace tutti::federated_averaging {

Worker::Worker(Context& context, const Config& config)
    : context_(context),
      node_(context.node),
      server_(static_cast<Rank>(context.cluster.workers)),
      split_(split_clients(context.data, config.split, client_count(config, context.cluster),
                           context.task.seed)),
      sampling_(config, static_cast<int64_t>(split_.clients()), context.task.seed),
      training_(context, config, split_),
      scaffold_(has_controls(config)),
      start_(context.model.parameters().size()),
      difference_(start_.size()),
      correction_(scaffold_ ? start_.size() : 0),
      control_(correction_.size()),
      started_s_(node_.clock().now()) {}

void Worker::run() {
  report({});
  for (;;) {
    const Order order = next_order();
    switch (order.kind) {
      case Order::kTrain:
        train(order);
        break;
      case Order::kEvaluate:
        evaluate(order);
        break;
      case Order::kFinish: {
        receive_parameters(context_.model.parameters(), {});
        Report goodbye;
        goodbye.kind = Report::kGoodbye;
        return report(goodbye);
      }
      case Order::kDiverged:
        throw DivergedError("the loss of a client is not a finite number any more");
      default:
        throw FabricError(
            FabricError::Kind::kProtocol, server_,
            fmt::format("rank {} refused to go on with this worker; its log says why", server_));
    }
  }
}

Order Worker::next_order() {
  PhaseScope scope(context_.watch, Phase::kWait);
  Order order;
  Handle handle = node_.endpoint().receive(server_, order_tag(),
                                           std::as_writable_bytes(std::span<Order>(&order, 1)));
  const size_t bytes = finish(node_, handle);
  const std::string fault = fault_of(order, bytes, sequence_ + 1, start_.size(), split_.clients());
  if (!fault.empty())
    throw FabricError(FabricError::Kind::kProtocol, server_,
                      fmt::format("the order of rank {} cannot be meant: {}", server_, fault));
  if (order.elements > 0) ++sequence_;
  return order;
}

void Worker::receive_parameters(std::span<float> parameters, std::span<float> correction) {
  PhaseScope scope(context_.watch, Phase::kCommunicate);
  Handle handles[2];
  const std::span<float> targets[2] = {parameters, correction};
  for (size_t part = 0; part < 2; ++part)
    if (!targets[part].empty())
      handles[part] = node_.endpoint().receive(server_, parameters_tag(sequence_, part),
                                               writable_bytes_of(targets[part]));
  for (size_t part = 0; part < 2; ++part) {
    if (!handles[part].pending()) continue;
    const size_t bytes = finish(node_, handles[part]);
    if (bytes != targets[part].size_bytes())
      throw FabricError(FabricError::Kind::kProtocol, server_,
                        fmt::format("rank {} sent {} bytes of parameters instead of {}", server_,
                                    bytes, targets[part].size_bytes()));
  }
}

void Worker::report(const Report& report) {
  PhaseScope scope(context_.watch, Phase::kCommunicate);
  Report numbered = report;
  numbered.sequence = sequence_;
  send(node_, server_, report_tag(), std::as_bytes(std::span<const Report>(&numbered, 1)));
}

void Worker::train(const Order& order) {
  receive_parameters(start_.span(), correction_.span());
  Report answer;
  answer.round = order.round;
  answer.client = order.client;
  ClientTraining::Result result;
  try {
    result = training_.train({.round = order.round,
                              .client = order.client,
                              .steps_before = order.steps_before,
                              .rate = order.rate,
                              .stamina = sampling_.stamina(order.round, order.client)},
                             start_.span(), correction_.span());
  } catch (const DivergedError&) {
    answer.kind = Report::kDiverged;
    report(answer);
    throw;
  }
  answer.kind = result.completed ? Report::kTrained : Report::kDropped;
  answer.steps = result.steps;
  answer.samples = result.samples;
  answer.loss = result.loss;
  report(answer);
  if (result.completed) send_update(result, order.rate);
  // What it does for a client is a step of this worker; those of the run are rounds.
  context_.recorder.step({.step = ++clients_,
                          .time_s = node_.clock().now() - started_s_,
                          .loss = result.loss,
                          .rate = order.rate,
                          .samples = context_.recorder.own_samples()});
}

void Worker::send_update(const ClientTraining::Result& result, double rate) {
  const std::span<const float> x = context_.model.parameters();
  on_vectors(context_, 3, x.size(), [&] {
    for (size_t i = 0; i < x.size(); ++i) difference_.data()[i] = x[i] - start_.data()[i];
  });
  if (scaffold_)
    on_vectors(context_, 3, x.size(), [&] {
      new_control_variate(correction_.span(), difference_.span(),
                          static_cast<double>(result.steps) * rate, control_.span());
      for (const Range range : context_.model.architecture().statistics())
        std::fill_n(control_.data() + range.begin, range.size(), 0.0F);
    });
  PhaseScope scope(context_.watch, Phase::kCommunicate);
  Handle handles[2];
  const std::span<const float> parts[2] = {difference_.span(), control_.span()};
  for (size_t part = 0; part < 2; ++part)
    if (!parts[part].empty())
      handles[part] =
          node_.endpoint().send(server_, update_tag(sequence_, part), bytes_of(parts[part]));
  for (Handle& handle : handles)
    if (handle.pending()) finish(node_, handle);
}

void Worker::evaluate(const Order& order) {
  if (order.task.end > evaluation_chunks(context_.data.splits.validation.size()))
    throw FabricError(
        FabricError::Kind::kProtocol, server_,
        fmt::format("rank {} asked for validation samples that there are not", server_));
  receive_parameters(context_.model.parameters(), {});
  const EvaluationSums sums = evaluate_chunks(context_, context_.data.splits.validation,
                                              order.task.begin, order.task.end, 1);
  Report answer;
  answer.kind = Report::kEvaluated;
  answer.share = share_of(order.task, sums);
  report(answer);
}

}  // namespace tutti::federated_averaging
