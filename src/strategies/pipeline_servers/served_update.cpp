#include "strategies/pipeline_servers/served_update.h"

#include <fmt/format.h>

#include "core/bytes.h"
#include "core/error.h"
#include "fabric/exchange.h"

namespace tutti {
namespace {

class ServedUpdate : public StageUpdate {
 public:
  ServedUpdate(Context& context, Rank server, size_t stage, StageModel& model)
      : context_(context), server_(server), stage_(stage), model_(model) {}

  // Nobody computes any more in this step, so the parameters may come to where the model has them.
  void share(GradientSum& gradient, uint64_t step) override {
    Endpoint& endpoint = context_.node.endpoint();
    PhaseScope scope(context_.watch, Phase::kCommunicate);
    arrived_ = endpoint.receive(server_, Tag(Purpose::kParameters, Tag::wrapped(step), stage_),
                                writable_bytes_of(model_.parameters()));
    sent_ = endpoint.send(server_, Tag(Purpose::kGradient, Tag::wrapped(step), stage_),
                          gradient.bytes());
  }

  void update(GradientSum&, double) override {
    wait(sent_, Phase::kCommunicate, "sends its gradient to", 0);
    wait(arrived_, Phase::kWait, "waits for its parameters from",
         model_.parameters().size_bytes());
  }

 private:
  void wait(Handle& handle, Phase phase, const char* what, size_t expected) {
    PhaseScope scope(context_.watch, phase);
    try {
      const size_t bytes = finish(context_.node, handle);
      if (expected > 0 && bytes != expected)
        throw FabricError(FabricError::Kind::kProtocol, server_,
                          fmt::format("{} bytes came instead of {}", bytes, expected));
    } catch (const FabricError& error) {
      throw FabricError(
          error.kind(), error.peer(),
          fmt::format("stage {} {} server rank {}: {}", stage_, what, server_, error.what()));
    }
  }

  Context& context_;
  Rank server_;
  size_t stage_;
  StageModel& model_;
  Handle arrived_, sent_;
};

}  // namespace

Rank server_of(const Placement& placement, const PipelineConfig& config, size_t stage,
               int64_t workers) {
  size_t server = 0;
  while (stage >= stages_on_server(placement, config, server).end) ++server;
  return static_cast<Rank>(workers + static_cast<int64_t>(server));
}

std::unique_ptr<StageUpdate> make_served_update(Context& context, const Placement& placement,
                                                const PipelineConfig& config, size_t stage, size_t,
                                                StageModel& model) {
  const Rank server = server_of(placement, config, stage, context.plan.workers);
  return std::make_unique<ServedUpdate>(context, server, stage, model);
}

}  // namespace tutti
