#include "strategies/early_exit/tier_answers.h"

#include "core/bytes.h"
#include "core/error.h"
#include "strategies/early_exit/tags.h"
#include "strategies/evaluation.h"

namespace tutti {
namespace {

std::span<std::byte> bytes_in(std::vector<ExitVerdict>& verdicts) {
  return writable_bytes_of(std::span(verdicts));
}

}  // namespace

// Devices take chunks in turn, unless all of them see a part of every sample.
bool TierAnswers::has_chunk(size_t chunk) const {
  return !is_first() || sees_part() || chunk % tiers_.devices == static_cast<size_t>(rank_);
}

std::vector<TierAnswers::Slice> TierAnswers::sources_of(size_t chunk, size_t samples) const {
  std::vector<Slice> sources;
  if (fusion_)
    for (const Rank device : tiers_.ranks_of(0)) sources.push_back({device, samples});
  else if (tier_ > 0)
    sources.push_back({tiers_.exit_rank(tier_ - 1, chunk), samples});
  return sources;
}

Verdicts TierAnswers::judge_all(std::span<const uint32_t> samples, uint64_t step) {
  const Tag tag = scores_tag(step, ScoresPart::kJudging);
  Verdicts verdicts(tiers_.size());
  std::vector<ExitVerdict>& own = verdicts[tier_];
  for (size_t chunk = 0; chunk < evaluation_chunks(samples.size()); ++chunk) {
    if (!has_chunk(chunk)) continue;
    context_.node.clock().begin_chunk();
    const auto part = samples_of_chunks(samples, chunk, chunk + 1);
    load_input(part, 0);
    if (!is_first()) receive_input(sources_of(chunk, part.size()), tag);
    const std::span<const float> output = forward();
    if (!is_last()) pass_on(output, tag);
    if (sees_part()) {
      send_scores(output, tag);
      continue;
    }
    own.resize(own.size() + part.size());
    arithmetic().perform(
        [&] { judge(head_scores(output), batch_.labels, std::span(own).last(part.size())); });
  }
  collect(verdicts, samples, step);
  return verdicts;
}

// Everybody's verdicts meet in the cloud, in the order of the samples.
void TierAnswers::collect(Verdicts& verdicts, std::span<const uint32_t> samples, uint64_t step) {
  const Tag tag = judging_tag(step, JudgingPart::kVerdicts);
  if (!is_last()) {
    if (!verdicts[tier_].empty()) send_to(tiers_.cloud(), tag, bytes_in(verdicts[tier_]));
    return;
  }
  for (size_t tier = 0; tier + 1 < tiers_.size(); ++tier) {
    verdicts[tier].resize(samples.size());
    const size_t parts = tier == 0 && !tiers_.views ? tiers_.devices : 1;
    for (size_t part = 0; part < parts; ++part) {
      std::vector<ExitVerdict> theirs;
      std::vector<size_t> places;
      for (size_t chunk = part; chunk < evaluation_chunks(samples.size()); chunk += parts) {
        const auto own = samples_of_chunks(samples, chunk, chunk + 1);
        for (size_t i = 0; i < own.size(); ++i)
          places.push_back(static_cast<size_t>(own.data() - samples.data()) + i);
      }
      theirs.resize(places.size());
      if (theirs.empty()) continue;
      receive_from(tiers_.exit_rank(tier, part), tag, bytes_in(theirs));
      for (size_t i = 0; i < places.size(); ++i) verdicts[tier][places[i]] = theirs[i];
    }
  }
}

// Those of a chunk that went on, at most all of it.
void TierAnswers::receive_some(size_t chunk, size_t most, uint64_t step) {
  const ActivationCode& code = code_below();
  const std::vector<Slice> sources = sources_of(chunk, most);
  parts_.resize(sources.size());
  for (size_t i = 0; i < sources.size(); ++i) {
    wire_.resize(most * code.sample_bytes());
    const size_t bytes =
        receive_from(sources[i].from, scores_tag(step, ScoresPart::kAnswering), wire_);
    const size_t count = bytes / code.sample_bytes();
    if (i > 0 && count != batch_.size())
      throw FabricError(FabricError::Kind::kProtocol, sources[i].from,
                        "devices passed on different numbers of samples");
    wire_.resize(count * code.sample_bytes());
    parts_[i].resize(count * code.values());
    arithmetic().perform([&] { code.decode(wire_, parts_[i]); });
    batch_.samples.assign(count, 0);  // nothing depends on who they are
  }
  join_parts();
}

// Decides for each sample whether it is answered here. A device that sees parts asks the
// aggregator. Any other node decides itself and tells the cloud.
void TierAnswers::decide(std::span<const float> output, double threshold, uint64_t step) {
  const Tag told = judging_tag(step, JudgingPart::kAnswers);
  const size_t samples = batch_.size(), width = tiers_.answer_bytes();
  answers_.resize(samples * width);
  if (samples == 0) return;
  if (sees_part()) {
    send_scores(output, scores_tag(step, ScoresPart::kAnswering));
    return receive_exactly(tiers_.exit_rank(0, 0), told, answers_, "answers");
  }
  arithmetic().perform([&] {
    const std::span<const float> scores = head_scores(output);
    for (size_t i = 0; i < samples; ++i)
      write_answer(answer_of(scores.subspan(i * tiers_.classes, tiers_.classes), threshold), width,
                   answers_.data() + i * width);
  });
  send_to(tiers_.cloud(), told, answers_);
}

// Passes on the samples that are not answered here.
void TierAnswers::answer_here(std::span<const float> output, double threshold, uint64_t step) {
  decide(output, threshold, step);
  going_on_.resize(output.size());  // the most that it can cost
  arithmetic().perform([&] {
    going_on_.clear();
    const size_t width = tiers_.answer_bytes(), values = code().values();
    for (size_t i = 0; i < batch_.size(); ++i) {
      if (read_answer(answers_.data() + i * width, width) != kGoesOn) continue;
      const auto own = output.subspan(i * values, values);
      going_on_.insert(going_on_.end(), own.begin(), own.end());
    }
  });
  pass_on(going_on_, scores_tag(step, ScoresPart::kAnswering));
}

std::vector<int32_t> TierAnswers::answers_of(Rank from, size_t count, uint64_t step) {
  const size_t width = tiers_.answer_bytes();
  answers_.resize(count * width);
  if (count > 0) receive_from(from, judging_tag(step, JudgingPart::kAnswers), answers_);
  std::vector<int32_t> result(count, kGoesOn);
  arithmetic().perform([&] {
    for (size_t i = 0; i < count; ++i) result[i] = read_answer(answers_.data() + i * width, width);
  });
  return result;
}

ExitNode::Answered TierAnswers::answer(std::span<const uint32_t> samples,
                                       std::span<const double> thresholds, uint64_t step) {
  Answered result;
  result.tally.left.resize(tiers_.size());
  result.tally.correct.resize(tiers_.size());
  const double sent_before = sent_;
  for (size_t chunk = 0; chunk < evaluation_chunks(samples.size()); ++chunk) {
    if (!has_chunk(chunk)) continue;
    context_.node.clock().begin_chunk();
    const auto part = samples_of_chunks(samples, chunk, chunk + 1);
    if (is_first())
      load_input(part, 0);
    else
      receive_some(chunk, part.size(), step);
    std::span<const float> output;
    if (batch_.size() > 0) output = forward();
    if (is_last())
      count_answers(part, chunk, output, step, result.tally);
    else
      answer_here(output, thresholds[tier_], step);
  }
  result.bytes_sent = sent_ - sent_before;
  return result;
}

// The cloud puts together who answered what.
void TierAnswers::count_answers(std::span<const uint32_t> samples, size_t chunk,
                                std::span<const float> scores, uint64_t step, ExitTally& tally) {
  std::vector<int32_t> answers(samples.size(), kGoesOn);
  std::vector<size_t> exits(samples.size(), tiers_.size() - 1), open(samples.size());
  for (size_t i = 0; i < open.size(); ++i) open[i] = i;
  for (size_t tier = 0; tier + 1 < tiers_.size(); ++tier) {
    const std::vector<int32_t> theirs =
        answers_of(tiers_.exit_rank(tier, chunk), open.size(), step);
    std::vector<size_t> still_open;
    for (size_t i = 0; i < open.size(); ++i) {
      if (theirs[i] == kGoesOn) {
        still_open.push_back(open[i]);
        continue;
      }
      answers[open[i]] = theirs[i];
      exits[open[i]] = tier;
    }
    open = std::move(still_open);
  }
  arithmetic().perform([&] {
    TUTTI_CHECK(scores.size() == open.size() * tiers_.classes);
    for (size_t i = 0; i < open.size(); ++i)
      answers[open[i]] = best_of(scores.subspan(i * tiers_.classes, tiers_.classes));
    load(samples, 0);
    for (size_t i = 0; i < samples.size(); ++i) {
      tally.left[exits[i]] += 1;
      tally.correct[exits[i]] += answers[i] == batch_.labels[i] ? 1 : 0;
      tally.samples += 1;
    }
  });
}

}  // namespace tutti
