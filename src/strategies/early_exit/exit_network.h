// Runs all tiers of an early-exit network in one place, to answer with what a run has kept. The
// arithmetic is that of the nodes, bit by bit, without the messages.
#pragma once

#include <memory>
#include <vector>

#include "models/exit_head.h"
#include "models/stage.h"
#include "strategies/early_exit/tiers.h"

namespace tutti {

// exits.safetensors has for each exit NAME.weight (classes x values; the values of an image have
// their channels last) and NAME.bias. `about` holds as JSON the version of this format, the cuts
// and the thresholds.
inline constexpr int kExitsVersion = 1;
// `exits` are the parameters of all heads, one after the other.
Attachment attach_exits(const Tiers& tiers, std::span<const float> exits,
                        const std::vector<double>& thresholds);

struct KeptExits {
  std::vector<int64_t> cuts;
  std::vector<double> thresholds;
};
// Throws DataError when the attachment is damaged or has another version.
KeptExits read_exits(const Attachment& attachment);

class ExitNetwork : public Answerer {
 public:
  // The model must outlive this object. Throws DataError when an exit is missing.
  ExitNetwork(Model& model, Tiers tiers, const Attachment& attachment,
              std::vector<double> thresholds);

  // Sends every sample no further than it must go. Batches of kEvaluationChunk samples give the
  // same answers as the test of the run.
  Answers answer(const Batch& batch) override;
  // Returns the scores of every exit, with all samples sent all the way.
  std::vector<std::vector<float>> scores(const Batch& batch);

 private:
  struct Exit {  // the scores of a tier's exit, and the features that the next tier gets
    std::vector<float> scores, features;
  };
  Exit pass_devices(const Batch& batch);
  Exit pass_tier(size_t tier, std::span<const float> input, size_t samples);
  Exit leave(std::span<const float> output, ExitHead& head, size_t tier);
  ExitHead read_head(const HeadPlace& place, const Attachment& attachment) const;

  const Tiers tiers_;
  std::vector<double> thresholds_;
  std::vector<std::unique_ptr<StageModel>> devices_, tiers_above_;
  std::vector<ExitHead> heads_;  // in the order of Tiers::heads()
};

}  // namespace tutti
