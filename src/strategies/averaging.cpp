#include "strategies/averaging.h"

#include <algorithm>
#include <cmath>

#include "core/bytes.h"
#include "core/error.h"

namespace tutti {
namespace {

Group group_of(const Context& context, std::span<const Rank> members) {
  const auto place = std::find(members.begin(), members.end(), context.node.endpoint().rank());
  TUTTI_CHECK(place != members.end());
  return {.ranks = {members.begin(), members.end()},
          .index = static_cast<size_t>(place - members.begin()),
          .racks = {}};
}

}  // namespace

Averaging::Averaging(Context& context, std::span<const Rank> members, size_t count)
    : context_(context),
      members_(members.size()),
      sum_(make_all_reduce(context.node, &context.watch, ring, group_of(context, members), count,
                           kSumFloat)) {}

void Averaging::start(std::span<float> values, Tag tag) {
  values_ = values;
  sum_->start(writable_bytes_of(values), tag);
}

void Averaging::finish() {
  sum_->finish();
  const float share = 1.0f / static_cast<float>(members_);
  on_vectors(context_, 2, values_.size(), [&] {
    for (float& value : values_) value *= share;
  });
}

void broadcast(Context& context, std::span<const Rank> members, std::span<float> values, Tag tag) {
  const auto copy =
      make_all_reduce(context.node, &context.watch,
                      tree_broadcast(group_of(context, members), values.size()), kSumFloat);
  copy->start(writable_bytes_of(values), tag);
  copy->finish();
}

StepCost averaging_cost(int64_t workers, size_t count) {
  Group group;
  for (Rank rank = 0; rank < workers; ++rank) group.ranks.push_back(rank);
  const Volume volume = volume_sent(ring(group, count));
  return {.bytes_sent = static_cast<double>(volume.elements * sizeof(float)),
          .messages = static_cast<double>(volume.messages)};
}

void on_vectors(Context& context, double passes, size_t count, const std::function<void()>& body) {
  PhaseScope scope(context.watch, Phase::kAggregate);
  context.arithmetic().perform(body);
  context.node.clock().charge(
      {.flops = 0, .memory_bytes = passes * static_cast<double>(count * sizeof(float))});
}

double consensus_distance(Context& context, std::span<const float> own, std::span<const float> mean,
                          Tag tag) {
  float squares = 0;
  on_vectors(context, 2, own.size(), [&] {
    double sum = 0;
    for (size_t i = 0; i < own.size(); ++i) {
      const double difference = double{own[i]} - double{mean[i]};
      sum += difference * difference;
    }
    squares = static_cast<float>(sum);
  });
  const auto sum = make_all_reduce(context.node, &context.watch,
                                   tree(group_of(context, context.members), 1), kSumFloat);
  sum->start(writable_bytes_of(std::span<float>(&squares, 1)), tag);
  sum->finish();
  return context.arithmetic().value_of<double>(
      [&] { return std::sqrt(double{squares} / static_cast<double>(context.members.size())); },
      NAN);
}

}  // namespace tutti
