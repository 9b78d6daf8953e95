// All tiers of an early-exit network in one place, to answer with what a run has kept: the same
// arithmetic as that of its nodes, bit by bit, without the messages.
#pragma once

#include <memory>
#include <vector>

#include "models/exit_head.h"
#include "models/stage.h"
#include "strategies/early_exit/tiers.h"

namespace tutti {

// exits.safetensors: of each exit, NAME.weight (classes x values, which of an image lie with their
// channels last) and NAME.bias; in `about`, as JSON, the version of this form, the cuts and the
// thresholds.
inline constexpr int kExitsVersion = 1;
// `exits` are the parameters of all heads, one after the other.
Attachment attach_exits(const Tiers& tiers, std::span<const float> exits,
                        const std::vector<double>& thresholds);

struct KeptExits {
  std::vector<int64_t> cuts;
  std::vector<double> thresholds;
};
// Throws DataError when it is of another version, or damaged.
KeptExits read_exits(const Attachment& attachment);

class ExitNetwork : public Answerer {
 public:
  // The model must outlive it. Throws DataError where an exit is missing.
  ExitNetwork(Model& model, Tiers tiers, const Attachment& attachment,
              std::vector<double> thresholds);

  // Every sample no further than it must go. Batches of kEvaluationChunk samples are answered as
  // those of the test were.
  Answers answer(const Batch& batch) override;
  // What every exit says, with all samples sent all the way.
  std::vector<std::vector<float>> scores(const Batch& batch);

 private:
  struct Exit {  // of a tier: what it says, and what goes on as the next tier gets it
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
