// A window of shared memory: each node owns one memory file, without a name, and maps all of them.
//
// A file begins with the slots, two cache lines each, and the buffer follows on the next page. The
// files travel through the launcher as descriptors, so that a node that was started later maps them
// like any other, and they vanish with the last process that holds them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "fabric/node.h"
#include "fabric/process/reactor.h"

namespace tutti::process {

// Room for mappings, in one piece. What is mapped into it goes with it.
class AddressSpace {
 public:
  explicit AddressSpace(size_t bytes);
  AddressSpace(AddressSpace&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  AddressSpace& operator=(AddressSpace&&) = delete;
  ~AddressSpace();

  std::span<std::byte> all() const { return {data_, bytes_}; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_;
};

class SharedWindow : public Window {
 public:
  // `files`: each node's, mapped into `memory`.
  SharedWindow(Reactor& reactor, AddressSpace memory, std::vector<std::span<std::byte>> files);
  SharedWindow(const SharedWindow&) = delete;
  SharedWindow& operator=(const SharedWindow&) = delete;

  std::span<std::byte> of(Rank rank) override;
  void post(int slot, uint64_t value) override;
  Completion await(Rank rank, int slot, uint64_t value, double timeout_s) override;
  const std::atomic<uint64_t>* slot(Rank rank, int slot) override;

  // Two cache lines, so that who has posted looks for sleepers without waiting for the line that
  // its store has just asked for: that costs a sum of 4 KiB a sixth of its time.
  struct Slot {
    alignas(64) std::atomic<uint64_t> value{0};
    // Who may be blocked; a node that died stays counted.
    alignas(64) std::atomic<uint32_t> sleepers{0};
  };
  static constexpr size_t kHeaderBytes = kSlots * sizeof(Slot);

 private:
  Slot& slot_of(Rank rank, int slot) {
    return reinterpret_cast<Slot*>(files_[static_cast<size_t>(rank)].data())[slot];
  }
  void wake_sleepers();
  Completion await_slowly(Rank rank, int slot, uint64_t value, double timeout_s);

  Reactor& reactor_;
  AddressSpace memory_;
  std::vector<std::span<std::byte>> files_;
};

// Collective. Throws FabricError when a member is lost, or when not all came within the time.
std::unique_ptr<Window> open_shared_window(Reactor& reactor, size_t bytes, double timeout_s);

}  // namespace tutti::process
