#include "strategies/early_exit/aggregator.h"

#include "core/bytes.h"
#include "models/losses.h"
#include "strategies/compute.h"
#include "strategies/early_exit/tags.h"
#include "strategies/evaluation.h"

namespace tutti {

ScoreAggregator::ScoreAggregator(Context& context, const Tiers& tiers)
    : ExitNode(context, tiers),
      fusion_(tiers.fuse_scores, *tiers.views, {static_cast<int64_t>(tiers.classes)}),
      place_(tiers.head_of(rank_)),
      parts_(tiers.devices) {
  if (!place_) return;
  const size_t beyond = context.model.architecture().parameters.size() + 2 * place_->number;
  head_.emplace(place_->values, tiers.classes, context.task.seed, static_cast<uint32_t>(beyond),
                arithmetic());
  optimizer_ = head_optimizer(*place_);
}

std::span<float> ScoreAggregator::head_parameters() {
  return head_ ? head_->parameters() : std::span<float>{};
}

std::span<const float> ScoreAggregator::receive_scores(size_t samples, Tag tag) {
  for (size_t device = 0; device < parts_.size(); ++device) {
    parts_[device].resize(samples * tiers_.classes);
    if (samples > 0)
      receive_exactly(static_cast<Rank>(device), tag, writable_bytes_of(std::span(parts_[device])),
                      "scores");
  }
  PhaseScope scope(context_.watch, Phase::kCompute);
  const auto values = static_cast<double>(samples * tiers_.classes * parts_.size());
  context_.node.clock().charge(
      {.flops = values + (head_ ? static_cast<double>(samples) * head_->forward_flops() : 0)});
  fused_.resize(samples * fusion_.values());
  std::span<const float> scores = std::span(fused_).first(samples * tiers_.classes);
  arithmetic().perform([&] {
    fusion_.forward(parts_, fused_);
    scores = head_ ? head_->forward(fused_) : fused_;
  });
  return scores;
}

// Sends each device the gradient with respect to its scores, from that of the exit's scores.
void ScoreAggregator::send_back(std::span<const float> slopes, uint64_t step) {
  arithmetic().perform([&] {
    PhaseScope scope(context_.watch, Phase::kCompute);
    if (head_) {
      head_slope_.resize(fused_.size());
      head_->backward(fused_, slopes, head_slope_);
      slopes = head_slope_;
    }
    fusion_.backward(slopes, parts_);
  });
  for (size_t device = 0; device < parts_.size(); ++device)
    send_to(static_cast<Rank>(device), slope_tag(step),
            bytes_of(std::span<const float>(parts_[device])));
}

double ScoreAggregator::train(const Shares& shares, uint64_t step, float scale) {
  const double weight = tiers_.weights[0];
  if (weight == 0) return share_loss(0, step);
  load(shares[0], step);
  const auto scores = receive_scores(batch_.size(), scores_tag(step, ScoresPart::kTraining));
  double loss = 0;
  slopes_.resize(scores.size());
  arithmetic().perform([&] {
    PhaseScope scope(context_.watch, Phase::kCompute);
    const auto weighted = static_cast<float>(static_cast<double>(scale) * weight);
    loss = weight * cross_entropy(scores, batch_.labels, weighted, slopes_);
  });
  send_back(slopes_, step);
  return share_loss(loss, step);
}

void ScoreAggregator::update(double rate) {
  if (!head_ || tiers_.weights[0] == 0) return;
  PhaseScope scope(context_.watch, Phase::kAggregate);
  update_parameters(context_, head_layout(*place_, tiers_.classes), *optimizer_,
                    head_->parameters(), head_->gradients(), rate);
}

Verdicts ScoreAggregator::judge_all(std::span<const uint32_t> samples, uint64_t step) {
  std::vector<ExitVerdict> own;
  for (size_t chunk = 0; chunk < evaluation_chunks(samples.size()); ++chunk) {
    context_.node.clock().begin_chunk();
    const auto part = samples_of_chunks(samples, chunk, chunk + 1);
    load(part, 0);
    const auto scores = receive_scores(part.size(), scores_tag(step, ScoresPart::kJudging));
    own.resize(own.size() + part.size());
    arithmetic().perform([&] { judge(scores, batch_.labels, std::span(own).last(part.size())); });
  }
  if (!own.empty())
    send_to(tiers_.cloud(), judging_tag(step, JudgingPart::kVerdicts),
            writable_bytes_of(std::span(own)));
  return {};
}

// The devices are told first, because the tiers above wait for what devices send.
ExitNode::Answered ScoreAggregator::answer(std::span<const uint32_t> samples,
                                           std::span<const double> thresholds, uint64_t step) {
  const double sent_before = sent_;
  const size_t width = tiers_.answer_bytes();
  const Tag told = judging_tag(step, JudgingPart::kAnswers);
  for (size_t chunk = 0; chunk < evaluation_chunks(samples.size()); ++chunk) {
    context_.node.clock().begin_chunk();
    const size_t count = samples_of_chunks(samples, chunk, chunk + 1).size();
    const auto scores = receive_scores(count, scores_tag(step, ScoresPart::kAnswering));
    answers_.resize(count * width);
    for (size_t i = 0; i < count; ++i) {
      const auto own = scores.subspan(i * tiers_.classes, tiers_.classes);
      const auto answer =
          arithmetic().value_of([&] { return answer_of(own, thresholds[0]); }, kGoesOn);
      write_answer(answer, width, answers_.data() + i * width);
    }
    for (const Rank device : tiers_.ranks_of(0)) send_to(device, told, answers_);
    send_to(tiers_.cloud(), told, answers_);
  }
  return {.tally = {}, .bytes_sent = sent_ - sent_before};
}

}  // namespace tutti
