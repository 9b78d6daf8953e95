// The Endpoint of a node of this fabric: handles and deadlines over the transport.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fabric/node.h"
#include "fabric/process/reactor.h"

namespace tutti::process {

class ProcessEndpoint : public Endpoint {
 public:
  ProcessEndpoint(Reactor& reactor, std::vector<std::string> roles);
  ~ProcessEndpoint() override;

  Rank rank() const override { return reactor_.rank(); }
  int size() const override { return static_cast<int>(roles_.size()); }
  const std::string& role(Rank rank) const override { return roles_.at(static_cast<size_t>(rank)); }
  Handle send(Rank to, Tag tag, std::span<const std::byte> data) override;
  Handle receive(Rank from, Tag tag, std::span<std::byte> buffer) override;
  Completion wait(Handle& handle, double timeout_s) override;
  std::pair<size_t, Completion> wait_any(std::span<Handle> handles, double timeout_s) override;
  std::optional<Completion> test(Handle& handle) override;
  Completion cancel(Handle& handle) override;
  Window* open_window(size_t bytes, double timeout_s) override;
  size_t piece_bytes(Rank peer) const override { return reactor_.transport().piece_bytes(peer); }
  size_t block_bytes(Rank peer) const override { return reactor_.transport().block_bytes(peer); }
  Traffic traffic() const override { return reactor_.transport().sends().traffic(); }
  std::vector<uint64_t> bytes_by_peer() const override {
    return reactor_.transport().sends().bytes_by_peer();
  }

 private:
  // Ends the handle and returns how its operation ended.
  Completion take(Handle& handle, Operation& operation);
  // When a loss ends every wait: cancels the operation and says whose loss it was.
  std::optional<Completion> ended_by_loss(Handle& handle, Operation& operation);

  Reactor& reactor_;
  std::vector<std::string> roles_;
  std::vector<std::unique_ptr<Window>> windows_;
};

}  // namespace tutti::process
