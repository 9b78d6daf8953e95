#include "strategies/early_exit/trainer.h"

#include <fmt/format.h>

#include <cmath>

#include "core/bytes.h"
#include "fabric/exchange.h"
#include "strategies/compute.h"
#include "strategies/early_exit/exit_network.h"
#include "strategies/early_exit/tags.h"
#include "strategies/evaluation.h"

namespace tutti {

EarlyExitTrainer::EarlyExitTrainer(Context& context, Tiers tiers, const EarlyExitConfig& config)
    : context_(context),
      tiers_(std::move(tiers)),
      config_(config),
      node_(make_exit_node(context, tiers_)),
      thresholds_(config.thresholds) {
  thresholds_.resize(tiers_.size() - 1, 0.0);
}

StepLoss EarlyExitTrainer::take_step(const Batches& batches, const StepAhead& next) {
  ExitNode::Shares shares;
  const size_t count_of_shares = tiers_.views ? 1 : tiers_.devices;
  for (size_t i = 0; i < count_of_shares; ++i) {
    const auto share = batches.share(next.step, static_cast<int64_t>(i));
    shares.emplace_back(share.begin(), share.end());
  }
  const auto me = static_cast<size_t>(context_.node.endpoint().rank());
  if (me < shares.size()) context_.recorder.trained(shares[me].size());
  const auto count = static_cast<double>(batches.count(next.step));
  const double loss = node_->train(shares, next.number, 1.0F / static_cast<float>(count));
  if (!std::isfinite(loss)) throw diverged_at(next.number);
  node_->update(next.rate);
  return {loss / count, static_cast<size_t>(batches.count(next.step))};
}

Quality EarlyExitTrainer::validate(Tag tag) {
  const std::span<const uint32_t> samples = context_.data.splits.validation;
  const Verdicts verdicts = node_->judge_all(samples, tag.step());
  EvaluationSums sums;
  if (node_->is_last())
    context_.arithmetic().perform([&] {
      PhaseScope scope(context_.watch, Phase::kCompute);
      if (config_.thresholds.empty())
        thresholds_ = choose_thresholds(verdicts, config_.tolerance, tiers_.costs());
      const ExitTally result = tally(verdicts, thresholds_, tiers_.costs());
      add_evaluation(sums, {.loss = result.loss,
                            .correct = result.accuracy() * result.samples,
                            .count = samples.size()});
    });
  share_sums(sums, tag);
  return quality_of(context_, sums, samples.size());
}

Attachment EarlyExitTrainer::gather_parameters() {
  const std::vector<float> exits = node_->gather_parameters();
  if (context_.node.endpoint().rank() != 0 || !context_.arithmetic().is_done()) return {};
  return attach_exits(tiers_, exits, thresholds_);
}

// The cloud knows, and tells everybody: with the thresholds.
void EarlyExitTrainer::share_sums(EvaluationSums& sums, Tag tag) {
  const Tag told = judging_tag(tag.step(), JudgingPart::kSums);
  const auto thresholds = writable_bytes_of(std::span(thresholds_));
  PhaseScope scope(context_.watch, Phase::kCommunicate);
  if (!node_->is_last()) {
    receive(context_.node, tiers_.cloud(), told, sums.bytes());
    receive(context_.node, tiers_.cloud(), told, thresholds);
  } else {
    for (Rank rank = 0; rank < tiers_.cloud(); ++rank) {
      send(context_.node, rank, told, sums.bytes());
      send(context_.node, rank, told, thresholds);
    }
  }
}

double EarlyExitTrainer::test() {
  const std::span<const uint32_t> samples = context_.data.splits.test;
  constexpr uint64_t kFinal = 0;
  const Verdicts verdicts = node_->judge_all(samples, kFinal);
  const ExitNode::Answered answered = node_->answer(samples, thresholds_, kFinal);
  // Bytes sent while answering by each node, then for each exit: samples that left, how many of
  // them were right, and how many of all would have been.
  const size_t exits = tiers_.size(), nodes = static_cast<size_t>(tiers_.cloud()) + 1;
  std::vector<double> figures(nodes + 3 * exits, 0.0);
  const Rank me = context_.node.endpoint().rank();
  figures[static_cast<size_t>(me)] = answered.bytes_sent;
  if (node_->is_last())
    for (size_t exit = 0; exit < exits; ++exit) {
      figures[nodes + exit] = answered.tally.left[exit];
      figures[nodes + exits + exit] = answered.tally.correct[exit];
      for (const ExitVerdict& verdict : verdicts[exit])
        figures[nodes + 2 * exits + exit] += double{verdict.correct};
    }
  const Tag tag(Purpose::kControl, kFinal, TierPart::kReport);
  PhaseScope scope(context_.watch, Phase::kCommunicate);
  if (me != 0) {
    send(context_.node, 0, tag, bytes_of(std::span<const double>(figures)));
    return NAN;
  }
  std::vector<double> theirs(figures.size());
  for (Rank rank = 1; rank < static_cast<Rank>(nodes); ++rank) {
    receive(context_.node, rank, tag, writable_bytes_of(std::span(theirs)));
    for (size_t i = 0; i < figures.size(); ++i) figures[i] += theirs[i];
  }
  return report(figures);
}

// Rank 0, of what all of them measured.
double EarlyExitTrainer::report(const std::vector<double>& figures) {
  const size_t exits = tiers_.size(), nodes = static_cast<size_t>(tiers_.cloud()) + 1;
  const auto count = static_cast<double>(context_.data.splits.test.size());
  if (!context_.arithmetic().is_done()) return NAN;  // who leaves where is not known
  Recorder& recorder = context_.recorder;
  Extra::Table table{
      .columns = {"exit", "threshold", "share", "accuracy", "accuracy_of_all", "bytes_per_sample"},
      .rows = {}};
  double right = 0, bytes = 0;
  for (size_t exit = 0; exit < exits; ++exit) {
    const double left = figures[nodes + exit], correct = figures[nodes + exits + exit];
    double sent = 0;
    for (const Rank rank : exit == 0 ? tiers_.devices_and_aggregator() : tiers_.ranks_of(exit))
      sent += figures[static_cast<size_t>(rank)];
    right += correct;
    bytes += sent;
    table.rows.push_back({static_cast<double>(exit), exit + 1 < exits ? thresholds_[exit] : 1.0,
                          left / count, left > 0 ? correct / left : 0,
                          figures[nodes + 2 * exits + exit] / count, sent / count});
    const std::string name = tier_name(tiers_, exit);
    recorder.figure(name + "_exit_share", left / count);
    recorder.figure(name + "_exit_accuracy", left > 0 ? correct / left : 0);
    recorder.figure(name + "_exit_accuracy_of_all", figures[nodes + 2 * exits + exit] / count);
  }
  recorder.table("exits", std::move(table));
  if (tiers_.views) {
    double sent = 0;
    for (const Rank rank : tiers_.ranks_of(0)) sent += figures[static_cast<size_t>(rank)];
    recorder.figure("each_device_bytes_per_sample",
                    sent / count / static_cast<double>(tiers_.devices));
  }
  recorder.figure("exit_accuracy", right / count);
  recorder.figure("exit_bytes_per_sample", bytes / count);
  recorder.figure("cloud_only_bytes_per_sample", tiers_.cloud_only_bytes());
  if (bytes > 0) recorder.figure("bytes_saved_factor", tiers_.cloud_only_bytes() * count / bytes);
  return right / count;
}

}  // namespace tutti
