// Synchronous gossip. Its quality is that of the mean of all workers' parameters, which only an
// all-reduce can tell; that is done where quality is measured, and its cost counts.
#include "core/bytes.h"
#include "strategies/averaging.h"
#include "strategies/gossip/gossip.h"
#include "strategies/gossip/neighbour_average.h"
#include "strategies/local_training.h"

namespace tutti {
namespace {

class LockstepGossip {
 public:
  LockstepGossip(Context& context, const GossipConfig& config)
      : context_(context),
        config_(config),
        training_(context, Pace::kLockstep),
        neighbours_(context.node, &context.watch, graph(config.graph), context.task.seed,
                    context.model.parameters().size()),
        mean_(context.model.parameters().size()),
        averaging_(context, context.members, context.model.parameters().size()) {}

  void run() {
    context_.node.membership().end_waits_on_any_loss(true);
    const bool gradients = config_.exchange == GossipExchange::kGradients;
    const bool adapt_first = config_.order == GossipOrder::kAdaptThenCombine;
    const std::span<float> parameters = context_.model.parameters();
    bool stop = false;
    while (!stop) {
      const auto round = static_cast<uint64_t>(training_.steps());
      if (!gradients && !adapt_first) neighbours_.start(parameters, round);
      training_.gradient([&](Range) { neighbours_.advance(); });
      if (gradients) average_gradients(round);
      if (!gradients && !adapt_first) neighbours_.finish();
      training_.update();
      if (!gradients && adapt_first) neighbours_.average(parameters, round);
      training_.end_step();
      stop = (training_.due() && measure()) || training_.over();
    }
    on_vectors(context_, 2, mean_.size(),
               [&] { std::copy_n(mean_.data(), mean_.size(), parameters.begin()); });
  }

 private:
  // Running statistics keep their own: who follows the neighbours' distances instead of its own
  // goes astray where neighbours disagree.
  void average_gradients(uint64_t round) {
    const std::span<float> gradients = context_.model.gradients();
    own_.clear();
    for (const Range range : statistics_)
      own_.insert(own_.end(), gradients.begin() + static_cast<std::ptrdiff_t>(range.begin),
                  gradients.begin() + static_cast<std::ptrdiff_t>(range.end));
    neighbours_.average(gradients, round);
    auto own = own_.begin();
    for (const Range range : statistics_)
      for (size_t i = range.begin; i < range.end; ++i) gradients[i] = *own++;
  }

  bool measure() {
    const std::span<float> own = context_.model.parameters();
    const auto step = Tag::wrapped(training_.steps());
    on_vectors(context_, 2, own.size(), [&] { std::copy(own.begin(), own.end(), mean_.data()); });
    const Tag distance(Purpose::kEvaluation, step, MeasuringPart::kDistance);
    averaging_.average(mean_.span(), Tag(Purpose::kEvaluation, step, MeasuringPart::kMean));
    context_.recorder.measure("consensus_distance", training_.steps(),
                              consensus_distance(context_, own, mean_.span(), distance));
    const ParametersInstead measured(context_, mean_.span());
    return training_.evaluate(context_.members);
  }

  // Parts of purpose kEvaluation, beside those of evaluation.h.
  enum class MeasuringPart : uint64_t { kMean = 2, kDistance = 3 };

  Context& context_;
  const GossipConfig& config_;
  LocalTraining training_;
  NeighbourAverage neighbours_;
  std::vector<Range> statistics_ = context_.model.architecture().statistics();
  std::vector<float> own_;  // scratch: what a gradient has of them
  Buffer<float> mean_;
  Averaging averaging_;  // of it: cancelled before the buffer goes
};

}  // namespace

void gossip_in_lockstep(Context& context, const GossipConfig& config) {
  LockstepGossip(context, config).run();
}

}  // namespace tutti
