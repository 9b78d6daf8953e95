// A node of the simulated cluster: the contract of node.h over the world.
#pragma once

#include <memory>
#include <vector>

#include "fabric/node.h"
#include "fabric/virtual/world.h"

namespace tutti::simulation {

class VirtualEndpoint final : public Endpoint {
 public:
  VirtualEndpoint(World& world, Rank rank) : world_(world), rank_(rank) {}
  Rank rank() const override { return rank_; }
  int size() const override { return world_.size(); }
  const std::string& role(Rank rank) const override {
    return world_.roles().at(static_cast<size_t>(rank));
  }
  Handle send(Rank to, Tag tag, std::span<const std::byte> data) override;
  Handle receive(Rank from, Tag tag, std::span<std::byte> buffer) override;
  Completion wait(Handle& handle, double timeout_s) override;
  std::pair<size_t, Completion> wait_any(std::span<Handle> handles, double timeout_s) override;
  std::optional<Completion> test(Handle& handle) override;
  Completion cancel(Handle& handle) override;
  Window* open_window(size_t bytes, double timeout_s) override;
  size_t piece_bytes(Rank /*peer*/) const override { return kBulkBytes; }
  size_t block_bytes(Rank /*peer*/) const override { return 0; }  // it has no caches
  Traffic traffic() const override { return world_.participant(rank_).traffic; }
  std::vector<uint64_t> bytes_by_peer() const override {
    std::vector<uint64_t> bytes(static_cast<size_t>(world_.size()));
    for (const auto& [peer, sent] : world_.participant(rank_).bytes_by_peer)
      bytes[static_cast<size_t>(peer)] = sent;
    return bytes;
  }

 private:
  Completion ended(const Handle& handle);  // how, once it has
  // The first of these handles that has ended, or that a loss ends.
  std::optional<std::pair<size_t, Completion>> look(std::span<Handle> handles);

  World& world_;
  Rank rank_;
  std::vector<std::unique_ptr<Window>> windows_;
};

class VirtualClock final : public Clock {
 public:
  VirtualClock(World& world, Rank rank) : world_(world), rank_(rank) {}
  double now() const override { return simulation::now(); }
  void sleep(double seconds) override { world_.sleep(rank_, seconds); }
  void charge(const Work& work) override { world_.charge(rank_, work); }
  void begin_step() override { world_.begin_step(rank_); }
  void begin_chunk() override { world_.begin_chunk(rank_); }
  double load() const override;
  double busy_s() const override { return world_.participant(rank_).busy_s; }
  double polled_s() const override { return world_.participant(rank_).polled_s; }
  bool simulated() const override { return true; }
  void end_part() override { world_.end_part(rank_); }
  Arithmetic arithmetic() const override { return Arithmetic(!world_.config().cost_only); }

 private:
  World& world_;
  Rank rank_;
};

class VirtualMembership final : public Membership {
 public:
  VirtualMembership(World& world, Rank rank) : world_(world), rank_(rank) {}
  bool alive(Rank rank) const override { return members().alive(rank); }
  uint32_t incarnation(Rank rank) const override { return world_.participant(rank).incarnation; }
  std::optional<MemberEvent> next_event() override {
    world_.leave_if_stopped();
    return members().next_event();
  }
  void end_waits_on_any_loss(bool on) override { members().end_waits_on_any_loss = on; }
  void end_waits_on_loss_of(std::vector<Rank> ranks) override {
    members().needed = std::move(ranks);
  }

 private:
  Members& members() const { return world_.participant(rank_).members; }
  World& world_;
  Rank rank_;
};

class VirtualNode final : public Node {
 public:
  VirtualNode(World& world, Rank rank)
      : world_(world), endpoint_(world, rank), clock_(world, rank), membership_(world, rank) {}
  Endpoint& endpoint() override { return endpoint_; }
  Clock& clock() override { return clock_; }
  Membership& membership() override { return membership_; }
  double timeout_s() const override { return world_.config().timeout_s; }
  [[noreturn]] void crash(double restart_s) { world_.crash_self(endpoint_.rank(), restart_s); }

 private:
  World& world_;
  VirtualEndpoint endpoint_;
  VirtualClock clock_;
  VirtualMembership membership_;
};

}  // namespace tutti::simulation
