// Asynchronous gossip: each worker averages with one neighbour at a time and waits for nobody.
//
// While it goes on nobody knows the mean, so quality is that of the parameters of one worker, the
// first that is left, measured by itself alone; at the end it is that of the mean of all.
#include "core/random.h"
#include "strategies/averaging.h"
#include "strategies/gossip/gossip.h"
#include "strategies/gossip/graph.h"
#include "strategies/local_training.h"
#include "strategies/pairwise.h"

namespace tutti {
namespace {

class FreeGossip {
 public:
  FreeGossip(Context& context, const GossipConfig& config)
      : context_(context),
        graph_(graph(config.graph)),
        me_(context.node.endpoint().rank()),
        training_(context, Pace::kFree),
        exchange_(context, 0.5, {Answering::kAll, [&] { return context.model.parameters(); }}) {}

  std::vector<Rank> run() {
    const std::span<float> parameters = context_.model.parameters();
    while (!training_.over() && !exchange_.reports().stopped()) {
      if (exchange_.idle()) ask_neighbour();
      training_.gradient();
      training_.update();
      training_.end_step();
      exchange_.set_steps(training_.steps());
      exchange_.set_own_samples(training_.own_samples());
      const bool asked = !exchange_.idle();
      exchange_.accept(parameters);
      exchange_.serve();
      if (asked && exchange_.idle())
        context_.recorder.measure("pair_distance", training_.steps(), exchange_.pair_distance());
      training_.set_samples(exchange_.reports().samples(), exchange_.likely_samples());
      if (training_.due() && !training_.over()) measure();
    }
    std::vector<Rank> left = exchange_.finish(parameters);
    training_.set_samples(exchange_.reports().samples());
    const Tag tag(Purpose::kParameters, 0, PairPart::kMean);
    Averaging(context_, left, parameters.size()).average(parameters, tag);
    training_.evaluate(left);
    return left;
  }

 private:
  void measure() {
    if (!exchange_.leads()) return training_.pass_over();
    if (training_.evaluate(std::span(&me_, 1))) exchange_.stop();
  }

  void ask_neighbour() {
    const auto step = static_cast<uint64_t>(training_.steps());
    const auto me = static_cast<size_t>(me_);
    std::vector<size_t> neighbours =
        graph_.mixing(exchange_.living().size(), me, step, context_.task.seed).to;
    std::erase_if(neighbours, [&](size_t worker) { return !exchange_.living()[worker]; });
    if (neighbours.empty()) return;
    Random random(context_.task.seed, Stream::kGossip, static_cast<uint32_t>(step),
                  static_cast<uint32_t>(me) + 1);
    exchange_.request(static_cast<Rank>(neighbours[random.below(neighbours.size())]),
                      context_.model.parameters());
  }

  Context& context_;
  const GraphEntry& graph_;
  const Rank me_;
  LocalTraining training_;
  PairwiseExchange exchange_;
};

}  // namespace

std::vector<Rank> gossip_freely(Context& context, const GossipConfig& config) {
  if (!joined_from_the_start(context)) return {};
  return FreeGossip(context, config).run();
}

}  // namespace tutti
