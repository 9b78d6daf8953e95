// Shared windows: memory that all nodes see, when all of them are on one host.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fabric/node.h"

namespace tutti::simulation {

class World;

// Zeroed, aligned to a page, and taken from the machine only where it is touched.
class Memory {
 public:
  Memory() = default;
  explicit Memory(size_t bytes);
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  ~Memory();
  std::span<std::byte> span() const { return {data_, bytes_}; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

// The windows that one collective call of open_window makes.
struct WindowGroup {
  struct Await {
    Rank waiter;
    Rank of;
    int slot;
    uint64_t value;
  };
  std::vector<Memory> memory;                               // by rank
  std::vector<std::array<uint64_t, Window::kSlots>> slots;  // by rank
  std::vector<bool> joined;                                 // by rank
  int missing = 0;
  std::vector<Await> awaits;
};

class Windows {
 public:
  explicit Windows(int nodes) : nodes_(nodes) {}
  // The group that is being opened, with `rank` in it; a new one if it is in that already.
  std::shared_ptr<WindowGroup> join(Rank rank, size_t bytes);
  void forget(Rank rank);  // a crashed node has to join again

 private:
  int nodes_;
  std::shared_ptr<WindowGroup> opening_;
};

// Throws FabricError when a node is lost, or the time over, before all have joined.
std::unique_ptr<Window> open_window(World& world, Rank rank, size_t bytes, double timeout_s);

}  // namespace tutti::simulation
