// The part of a TierWorker that does not train: chunks of samples go up through the tiers, all of
// them to be judged by every exit, or each no further than it must.
#include <algorithm>
#include <cstring>

#include "core/bytes.h"
#include "core/error.h"
#include "strategies/early_exit/tags.h"
#include "strategies/early_exit/tier_worker.h"

namespace tutti {
namespace {

constexpr int32_t kGoesOn = -1;

// A byte for each class and one for "goes on", or four where there are too many classes.
void write_answer(int32_t answer, size_t bytes, std::byte* out) {
  std::memcpy(out, &answer, bytes);  // little endian: of -1 the low byte is 255
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

std::span<std::byte> bytes_in(std::vector<ExitVerdict>& verdicts) {
  return writable_bytes_of(std::span(verdicts));
}

}  // namespace

// Devices take chunks in turn.
bool TierWorker::has_chunk(size_t chunk) const {
  return !is_first() ||
         chunk % tiers_.devices == static_cast<size_t>(context_.node.endpoint().rank());
}

Rank TierWorker::source_of(size_t chunk) const {
  return tier_ == 1 ? static_cast<Rank>(chunk % tiers_.devices) : tiers_.rank_of(tier_ - 1);
}

Verdicts TierWorker::judge_all(std::span<const uint32_t> samples, uint64_t step) {
  const Tag tag(Purpose::kActivation, step, kJudgingPart);
  Verdicts verdicts(tiers_.size());
  std::vector<ExitVerdict>& own = verdicts[tier_];
  for (size_t chunk = 0; chunk < evaluation_chunks(samples.size()); ++chunk) {
    if (!has_chunk(chunk)) continue;
    context_.node.clock().begin_chunk();
    const auto part = samples_of_chunks(samples, chunk, chunk + 1);
    load(part, 0);
    if (!is_first()) {
      const Slice slice{source_of(chunk), part.size()};
      receive_input({&slice, 1}, tag);
    }
    const std::span<const float> output = forward();
    if (!is_last()) pass_on(output, tag);
    own.resize(own.size() + part.size());
    if (arithmetic()) judge(head_scores(output), batch_.labels, std::span(own).last(part.size()));
  }
  collect(verdicts, samples, step);
  return verdicts;
}

// Everybody's verdicts meet in the cloud, in the order of the samples.
void TierWorker::collect(Verdicts& verdicts, std::span<const uint32_t> samples, uint64_t step) {
  const Tag tag(Purpose::kEvaluation, step, kVerdictsPart);
  if (!is_last()) {
    if (!verdicts[tier_].empty()) send_to(tiers_.cloud(), tag, bytes_in(verdicts[tier_]));
    return;
  }
  for (size_t tier = 0; tier + 1 < tiers_.size(); ++tier) {
    verdicts[tier].resize(samples.size());
    const size_t parts = tier == 0 ? tiers_.devices : 1;
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
      const Rank from = tier == 0 ? static_cast<Rank>(part) : tiers_.rank_of(tier);
      receive_from(from, tag, bytes_in(theirs));
      for (size_t i = 0; i < places.size(); ++i) verdicts[tier][places[i]] = theirs[i];
    }
  }
}

// Those of a chunk that went on, at most all of it.
void TierWorker::receive_some(Rank from, size_t most, uint64_t step) {
  const ActivationCode& code = code_below();
  wire_.resize(most * code.sample_bytes());
  const size_t bytes = receive_from(from, Tag(Purpose::kActivation, step, kAnsweringPart), wire_);
  const size_t count = bytes / code.sample_bytes();
  wire_.resize(count * code.sample_bytes());
  input_.resize(count * code.values());
  if (arithmetic()) code.decode(wire_, input_);
  batch_.samples.assign(count, 0);  // nothing depends on who they are
}

// Sends an answer, or that there is none, to the cloud for each sample, and passes on the rest.
void TierWorker::answer_here(std::span<const float> output, double threshold, uint64_t step) {
  const size_t samples = batch_.size(), width = tiers_.answer_bytes();
  answers_.resize(samples * width);
  going_on_.clear();
  if (arithmetic()) {
    const std::span<const float> scores = head_scores(output);
    for (size_t i = 0; i < samples; ++i) {
      const auto own = scores.subspan(i * tiers_.classes, tiers_.classes);
      // As it is judged: rounded to a float.
      const bool leaving = leaves(static_cast<float>(normalised_entropy(own)), threshold);
      write_answer(leaving ? best_of(own) : kGoesOn, width, answers_.data() + i * width);
      const auto values = output.subspan(i * code().values(), code().values());
      if (!leaving) going_on_.insert(going_on_.end(), values.begin(), values.end());
    }
  } else {
    going_on_.resize(output.size());  // what it costs at most
  }
  if (samples > 0) send_to(tiers_.cloud(), Tag(Purpose::kEvaluation, step, kAnswersPart), answers_);
  pass_on(going_on_, Tag(Purpose::kActivation, step, kAnsweringPart));
}

std::vector<int32_t> TierWorker::answers_of(Rank from, size_t count, uint64_t step) {
  const size_t width = tiers_.answer_bytes();
  answers_.resize(count * width);
  if (count > 0) receive_from(from, Tag(Purpose::kEvaluation, step, kAnswersPart), answers_);
  std::vector<int32_t> result(count, kGoesOn);
  for (size_t i = 0; i < count && arithmetic(); ++i)
    result[i] = read_answer(answers_.data() + i * width, width);
  return result;
}

TierWorker::Answered TierWorker::answer(std::span<const uint32_t> samples,
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
      load(part, 0);
    else
      receive_some(source_of(chunk), part.size(), step);
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
void TierWorker::count_answers(std::span<const uint32_t> samples, size_t chunk,
                               std::span<const float> scores, uint64_t step, ExitTally& tally) {
  std::vector<int32_t> answers(samples.size(), kGoesOn);
  std::vector<size_t> exits(samples.size(), tiers_.size() - 1), open(samples.size());
  for (size_t i = 0; i < open.size(); ++i) open[i] = i;
  for (size_t tier = 0; tier + 1 < tiers_.size(); ++tier) {
    const Rank from = tier == 0 ? static_cast<Rank>(chunk % tiers_.devices) : tiers_.rank_of(tier);
    const std::vector<int32_t> theirs = answers_of(from, open.size(), step);
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
  if (!arithmetic()) return;
  TUTTI_CHECK(scores.size() == open.size() * tiers_.classes);
  for (size_t i = 0; i < open.size(); ++i)
    answers[open[i]] = best_of(scores.subspan(i * tiers_.classes, tiers_.classes));
  load(samples, 0);
  for (size_t i = 0; i < samples.size(); ++i) {
    tally.left[exits[i]] += 1;
    tally.correct[exits[i]] += answers[i] == batch_.labels[i] ? 1 : 0;
    tally.samples += 1;
  }
}

}  // namespace tutti
