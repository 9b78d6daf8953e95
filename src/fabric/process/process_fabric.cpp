#include "fabric/process/process_fabric.h"

#include <utility>

#include "core/error.h"
#include "fabric/process/supervisor.h"

namespace tutti {
namespace {

class ProcessFabric : public Fabric {
 public:
  ProcessFabric(std::vector<std::string> roles, const ProcessOptions& options)
      : roles_(std::move(roles)), options_(options) {}

  std::vector<NodeOutcome> run(const Body& body, const std::atomic<bool>& stop) override {
    process::Supervisor supervisor(roles_, options_, body, stop);
    std::vector<NodeOutcome> outcomes = supervisor.run();
    figures_.startup_s = supervisor.startup_s();
    return outcomes;
  }
  FabricFigures figures() const override { return figures_; }

 private:
  std::vector<std::string> roles_;
  ProcessOptions options_;
  FabricFigures figures_;
};

}  // namespace

std::unique_ptr<Fabric> make_process_fabric(std::vector<std::string> roles,
                                            const ProcessOptions& options) {
  TUTTI_CHECK(!roles.empty());
  return std::make_unique<ProcessFabric>(std::move(roles), options);
}

}  // namespace tutti
