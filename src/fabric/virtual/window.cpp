#include "fabric/virtual/window.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "fabric/virtual/world.h"

namespace tutti::simulation {
namespace {

struct SlotWaiting : Waiting {
  SlotWaiting(Rank rank_, int slot_, uint64_t value_) : rank(rank_), slot(slot_), value(value_) {}
  std::string describe() const override {
    return fmt::format("rank {} (window slot {} to reach {})", rank, slot, value);
  }
  Rank rank;
  int slot;
  uint64_t value;
};

struct OpeningWaiting : Waiting {
  explicit OpeningWaiting(const WindowGroup& group_) : group(group_) {}
  std::string describe() const override {
    const auto absent = std::find(group.joined.begin(), group.joined.end(), false);
    return fmt::format("rank {} to open a window", absent - group.joined.begin());
  }
  const WindowGroup& group;
};

class VirtualWindow : public Window {
 public:
  VirtualWindow(World& world, Rank rank, std::shared_ptr<WindowGroup> group)
      : world_(world), rank_(rank), group_(std::move(group)) {}

  std::span<std::byte> of(Rank rank) override {
    return group_->memory.at(static_cast<size_t>(rank)).span();
  }

  void post(int slot, uint64_t value) override {
    world_.leave_if_stopped();
    uint64_t& current = at(rank_, slot);
    TUTTI_CHECK(value >= current);
    current = value;
    for (const WindowGroup::Await& await : group_->awaits)
      if (await.of == rank_ && await.slot == slot && await.value <= value)
        world_.wake(await.waiter);
    world_.sleep(rank_, world_.config().visibility_s);
  }

  Completion await(Rank rank, int slot, uint64_t value, double timeout_s) override {
    world_.leave_if_stopped();
    const uint64_t& current = at(rank, slot);
    Completion completion{State::kPending, rank, Tag(Purpose::kFabric, Tag::wrapped(value)), 0};
    const Members& members = world_.participant(rank_).members;
    const double deadline_s = now() + timeout_s;
    const SlotWaiting waiting(rank, slot, value);
    bool in_time = true;
    while (current < value) {
      if (!members.alive(members.named(rank))) {
        completion.state = State::kPeerLost;
        completion.peer = members.named(rank);
        return completion;
      }
      if (!in_time) {
        completion.state = State::kTimedOut;
        return completion;
      }
      const Registration registration(*group_, {rank_, rank, slot, value});
      in_time = world_.block(rank_, deadline_s, waiting);
    }
    world_.sleep(rank_, world_.config().visibility_s);
    completion.state = State::kDone;
    return completion;
  }

 private:
  // Withdraws itself also when the node is killed while it waits.
  struct Registration {
    Registration(WindowGroup& group_, WindowGroup::Await await_)
        : group(group_), waiter(await_.waiter) {
      group.awaits.push_back(await_);
    }
    ~Registration() {
      std::erase_if(group.awaits, [this](const auto& other) { return other.waiter == waiter; });
    }
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;
    WindowGroup& group;
    Rank waiter;
  };

  uint64_t& at(Rank rank, int slot) {
    TUTTI_CHECK(slot >= 0 && slot < kSlots);
    return group_->slots.at(static_cast<size_t>(rank))[static_cast<size_t>(slot)];
  }

  World& world_;
  Rank rank_;
  std::shared_ptr<WindowGroup> group_;
};

}  // namespace

Memory::Memory(size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    throw Error(fmt::format("no memory for a shared window of {} bytes", bytes));
  data_ = static_cast<std::byte*>(mapped);
}

Memory::Memory(Memory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Memory::~Memory() {
  if (data_) munmap(data_, bytes_);
}

std::shared_ptr<WindowGroup> Windows::join(Rank rank, size_t bytes) {
  const auto nodes = static_cast<size_t>(nodes_);
  if (!opening_) {
    opening_ = std::make_shared<WindowGroup>();
    opening_->memory.resize(nodes);
    opening_->slots.resize(nodes);
    opening_->joined.resize(nodes);
    opening_->missing = nodes_;
  }
  std::shared_ptr<WindowGroup> group = opening_;
  group->memory[static_cast<size_t>(rank)] = Memory(bytes);
  if (!group->joined[static_cast<size_t>(rank)]) --group->missing;
  group->joined[static_cast<size_t>(rank)] = true;
  if (group->missing == 0) opening_.reset();
  return group;
}

void Windows::forget(Rank rank) {
  if (!opening_ || !opening_->joined[static_cast<size_t>(rank)]) return;
  opening_->joined[static_cast<size_t>(rank)] = false;
  ++opening_->missing;
}

std::unique_ptr<Window> open_window(World& world, Rank rank, size_t bytes, double timeout_s) {
  world.leave_if_stopped();
  if (!world.platform().one_host()) return nullptr;
  const std::shared_ptr<WindowGroup> group = world.windows().join(rank, bytes);
  const double deadline_s = now() + timeout_s;
  const OpeningWaiting waiting(*group);
  const Members& members = world.participant(rank).members;
  bool in_time = true;
  while (group->missing > 0) {
    for (Rank other = 0; other < world.size(); ++other)
      if (!members.alive(other) && !group->joined[static_cast<size_t>(other)])
        throw FabricError(FabricError::Kind::kPeerLost, other,
                          fmt::format("lost rank {} while opening a shared window", other));
    if (!in_time)
      throw FabricError(FabricError::Kind::kTimedOut, kAnyRank,
                        "timed out waiting for " + waiting.describe());
    in_time = world.block(rank, deadline_s, waiting);
  }
  for (Rank other = 0; other < world.size(); ++other) world.wake(other);
  return std::make_unique<VirtualWindow>(world, rank, group);
}

}  // namespace tutti::simulation
