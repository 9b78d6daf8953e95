// The common interface of the nodes of an early-exit network. Each takes part in training, in
// judging and in answering, whatever it computes.
#pragma once

#include <memory>
#include <vector>

#include "strategies/early_exit/tiers.h"

namespace tutti {

class ExitNode {
 public:
  // The samples of a batch for each device. There is one share only when all devices see parts of
  // all samples.
  using Shares = std::vector<std::vector<uint32_t>>;

  ExitNode(Context& context, const Tiers& tiers);
  virtual ~ExitNode() = default;
  ExitNode(const ExitNode&) = delete;
  ExitNode& operator=(const ExitNode&) = delete;

  // Runs forward and backward for one batch. Returns the weighted sum of the losses of all exits,
  // which is the same on every node.
  virtual double train(const Shares& shares, uint64_t step, float scale) = 0;
  virtual void update(double rate) = 0;
  // Sends all samples to the last exit and judges every exit. Only the cloud returns all verdicts.
  virtual Verdicts judge_all(std::span<const uint32_t> samples, uint64_t step) = 0;
  // The result of answering as in use, where a sample goes no further than it must. The tally is
  // known in the cloud; the bytes are those that this node has sent.
  struct Answered {
    ExitTally tally;  // in the cloud; without losses and bytes
    double bytes_sent = 0;
  };
  virtual Answered answer(std::span<const uint32_t> samples, std::span<const double> thresholds,
                          uint64_t step) = 0;
  virtual std::span<float> head_parameters() = 0;  // empty without an exit

  // Brings the parameters of all layers to rank 0, and returns those of all exits there.
  std::vector<float> gather_parameters();
  bool is_last() const { return rank_ == tiers_.cloud(); }

 protected:
  // Makes room for the parameters of all layers (node_model.h).
  virtual void make_whole() { context_.model.make_whole(); }
  Arithmetic arithmetic() const { return context_.arithmetic(); }
  void load(std::span<const uint32_t> samples, uint64_t step);
  void send_to(Rank to, Tag tag, std::span<const std::byte> bytes);
  size_t receive_from(Rank from, Tag tag, std::span<std::byte> bytes);
  // Throws FabricError when another number of bytes arrives.
  void receive_exactly(Rank from, Tag tag, std::span<std::byte> bytes, const char* what);
  double share_loss(double own, uint64_t step);
  std::unique_ptr<Optimizer> head_optimizer(const HeadPlace& head) const;

  Context& context_;
  const Tiers& tiers_;
  const Rank rank_;
  Batch batch_;
  double sent_ = 0;  // bytes
};

// Makes the object for the role of this node.
std::unique_ptr<ExitNode> make_exit_node(Context& context, const Tiers& tiers);

// The encoded answer of an exit. It takes one byte, with 255 for "goes on", or four bytes when
// there are too many classes.
inline constexpr int32_t kGoesOn = -1;
void write_answer(int32_t answer, size_t bytes, std::byte* out);
int32_t read_answer(const std::byte* in, size_t bytes);
// Returns the answer of an exit with these scores at this threshold: a class, or kGoesOn.
int32_t answer_of(std::span<const float> scores, double threshold);
int32_t best_of(std::span<const float> scores);

}  // namespace tutti
