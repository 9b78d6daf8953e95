#include "strategies/early_exit/exit_node.h"

#include <algorithm>
#include <cstring>

#include "core/bytes.h"
#include "core/error.h"
#include "fabric/exchange.h"
#include "strategies/compute.h"
#include "strategies/early_exit/aggregator.h"
#include "strategies/early_exit/tags.h"
#include "strategies/early_exit/tier_worker.h"

namespace tutti {

ExitNode::ExitNode(Context& context, const Tiers& tiers)
    : context_(context), tiers_(tiers), rank_(context.node.endpoint().rank()) {}

void ExitNode::send_to(Rank to, Tag tag, std::span<const std::byte> bytes) {
  PhaseScope scope(context_.watch, Phase::kCommunicate);
  send(context_.node, to, tag, bytes);
  sent_ += static_cast<double>(bytes.size());
}

size_t ExitNode::receive_from(Rank from, Tag tag, std::span<std::byte> bytes) {
  PhaseScope scope(context_.watch, Phase::kWait);
  Handle handle = context_.node.endpoint().receive(from, tag, bytes);
  return finish(context_.node, handle);
}

void ExitNode::receive_exactly(Rank from, Tag tag, std::span<std::byte> bytes, const char* what) {
  if (receive_from(from, tag, bytes) != bytes.size())
    throw FabricError(FabricError::Kind::kProtocol, from,
                      std::string(what) + " of another size than that of its samples");
}

// Features are for the first tier; answers for every exit. Dropout knows samples by their number.
void ExitNode::load(std::span<const uint32_t> samples, uint64_t step) {
  batch_.step = step;
  gather(context_, samples, batch_);
}

// The losses of all exits meet in the cloud, which tells the sum.
double ExitNode::share_loss(double own, uint64_t step) {
  const Tag mine = tier_tag(step, TierPart::kExitLoss), all = tier_tag(step, TierPart::kLoss);
  const auto bytes = [](double& value) { return writable_bytes_of(std::span<double>(&value, 1)); };
  const Rank cloud = tiers_.cloud();
  if (!is_last()) {
    double sum = own;
    send_to(cloud, mine, bytes(sum));
    receive_from(cloud, all, bytes(sum));
    return sum;
  }
  for (Rank rank = 0; rank < cloud; ++rank) {
    double other = 0;
    receive_from(rank, mine, bytes(other));
    own += other;
  }
  for (Rank rank = 0; rank < cloud; ++rank) send_to(rank, all, bytes(own));
  return own;
}

std::unique_ptr<Optimizer> ExitNode::head_optimizer(const HeadPlace& head) const {
  return make_optimizer(context_.optimizer, head_layout(head, tiers_.classes));
}

std::vector<float> ExitNode::gather_parameters() {
  const auto bring = [&](Rank owner, GatheringPart part, std::span<float> values) {
    const Tag tag(Purpose::kParameters, 0, part);
    if (owner == 0 || (rank_ != 0 && rank_ != owner)) return;
    if (rank_ == owner)
      send_to(0, tag, bytes_of(std::span<const float>(values)));
    else
      receive_from(owner, tag, writable_bytes_of(values));
  };
  if (rank_ == 0) make_whole();
  for (Rank owner = 1; owner <= tiers_.cloud(); ++owner) {
    if (tiers_.tier_of(owner) == 0 && !tiers_.views) continue;  // a copy of the first device's
    if (rank_ != 0 && rank_ != owner) continue;
    for (const Range layers : tiers_.layers_of(owner))
      bring(owner, GatheringPart::kLayers, context_.model.parameters_of(layers));
  }
  std::vector<float> exits;
  for (const HeadPlace& head : tiers_.heads()) {
    const size_t begin = exits.size(), count = head.parameters(tiers_.classes);
    if (rank_ == 0) exits.resize(begin + count);
    const std::span<float> own = head.rank == rank_ ? head_parameters() : std::span<float>{};
    if (rank_ == 0 && head.rank == 0)
      std::copy(own.begin(), own.end(), exits.begin());
    else
      bring(head.rank, GatheringPart::kExits,
            rank_ == 0 ? std::span(exits).subspan(begin, count) : own);
  }
  return exits;
}

std::unique_ptr<ExitNode> make_exit_node(Context& context, const Tiers& tiers) {
  if (tiers.is_aggregator(context.node.endpoint().rank()))
    return std::make_unique<ScoreAggregator>(context, tiers);
  return std::make_unique<TierWorker>(context, tiers);
}

void write_answer(int32_t answer, size_t bytes, std::byte* out) {
  std::memcpy(out, &answer, bytes);  // little endian: the low byte of -1 is 255
}

int32_t read_answer(const std::byte* in, size_t bytes) {
  if (bytes == 1) return *in == std::byte{255} ? kGoesOn : static_cast<int32_t>(*in);
  int32_t answer = 0;
  std::memcpy(&answer, in, bytes);
  return answer;
}

int32_t best_of(std::span<const float> scores) {
  return static_cast<int32_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

// The entropy is rounded to a float, as in judge(), so that both decide alike.
int32_t answer_of(std::span<const float> scores, double threshold) {
  return leaves(static_cast<float>(normalised_entropy(scores)), threshold) ? best_of(scores)
                                                                           : kGoesOn;
}

}  // namespace tutti
