#include "fabric/virtual/virtual_fabric.h"

#include <array>
#include <csignal>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/error.h"
#include "core/isolated_run.h"
#include "fabric/virtual/virtual_node.h"
#include "fabric/virtual/world.h"

namespace tutti {
namespace {

using simulation::World;

// The engine installs handlers of its own; what the program does on Ctrl-C is not its business.
class KeepSignalHandlers {
 public:
  KeepSignalHandlers() {
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], nullptr, &kept_[i]);
  }
  ~KeepSignalHandlers() {
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &kept_[i], nullptr);
  }
  KeepSignalHandlers(const KeepSignalHandlers&) = delete;
  KeepSignalHandlers& operator=(const KeepSignalHandlers&) = delete;

 private:
  static constexpr std::array<int, 3> kSignals{SIGINT, SIGSEGV, SIGBUS};
  std::array<struct sigaction, 3> kept_{};
};

// From the child to its parent: both run the same program, so plain bytes will do.
class Packer {
 public:
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void put(const T& value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void put(const std::string& text) {
    put(text.size());
    bytes_ += text;
  }
  void put(const std::vector<double>& numbers) {
    put(numbers.size());
    for (const double number : numbers) put(number);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Unpacker {
 public:
  explicit Unpacker(const std::string& bytes) : bytes_(bytes) {}
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void get(T& value) {
    TUTTI_CHECK(bytes_.size() - at_ >= sizeof value);
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
  }
  void get(std::string& text) {
    size_t size = 0;
    get(size);
    TUTTI_CHECK(bytes_.size() - at_ >= size);
    text = bytes_.substr(at_, size);
    at_ += size;
  }

  void get(std::vector<double>& numbers) {
    size_t size = 0;
    get(size);
    TUTTI_CHECK((bytes_.size() - at_) / sizeof(double) >= size);
    numbers.resize(size);
    for (double& number : numbers) get(number);
  }

 private:
  const std::string& bytes_;
  size_t at_ = 0;
};

std::string pack(const World::Result& result) {
  Packer packer;
  packer.put(result.energy.hosts);
  packer.put(result.energy.links);
  packer.put(result.energy.uplinks);
  for (const NodeOutcome& outcome : result.outcomes) {
    packer.put(outcome.kind);
    packer.put(outcome.result);
    packer.put(outcome.error);
    packer.put(outcome.exit_code);
    packer.put(outcome.lost_peer);
  }
  return packer.take();
}

World::Result unpack(const std::string& bytes, size_t nodes) {
  World::Result result;
  Unpacker unpacker(bytes);
  unpacker.get(result.energy.hosts);
  unpacker.get(result.energy.links);
  unpacker.get(result.energy.uplinks);
  result.outcomes.resize(nodes);
  for (NodeOutcome& outcome : result.outcomes) {
    unpacker.get(outcome.kind);
    unpacker.get(outcome.result);
    unpacker.get(outcome.error);
    unpacker.get(outcome.exit_code);
    unpacker.get(outcome.lost_peer);
  }
  return result;
}

class VirtualFabric final : public Fabric {
 public:
  VirtualFabric(const ClusterConfig& config, std::vector<std::string> roles, uint64_t seed)
      : config_(config), roles_(std::move(roles)), seed_(seed) {}

  std::vector<NodeOutcome> run(const Body& body, const std::atomic<bool>& stop) override {
    const std::string bytes = run_isolated(
        "simulation",
        [&](const std::atomic<bool>& parent_stop) {
          // Ctrl-C reaches the whole process group: then the child's own copy of `stop` is raised.
          return simulate(body, [&] { return stop.load() || parent_stop.load(); });
        },
        stop);
    World::Result result = unpack(bytes, roles_.size());
    figures_.energy = std::move(result.energy);
    return std::move(result.outcomes);
  }

  FabricFigures figures() const override { return figures_; }

 private:
  std::string simulate(const Body& body, const std::function<bool()>& stopped) const {
    {
      const KeepSignalHandlers keep;
      simulation::start_simulator(config_.network_solver);
    }
    // Never destroyed: the process ends now, and killed actors may still refer to it.
    auto* world = new World(config_, roles_, seed_, body, stopped);
    return pack(world->run());
  }

  ClusterConfig config_;
  std::vector<std::string> roles_;
  uint64_t seed_;
  FabricFigures figures_;
};

}  // namespace

std::unique_ptr<Fabric> make_virtual_fabric(const ClusterConfig& config,
                                            std::vector<std::string> roles, uint64_t seed) {
  TUTTI_CHECK(!roles.empty());
  return std::make_unique<VirtualFabric>(config, std::move(roles), seed);
}

void crash_virtual_node(Node& node, double restart_s) {
  dynamic_cast<simulation::VirtualNode&>(node).crash(restart_s);
}

}  // namespace tutti

extern "C" const tutti::MakeFabric tutti_make_virtual_fabric = &tutti::make_virtual_fabric;
