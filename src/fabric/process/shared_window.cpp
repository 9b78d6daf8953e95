#include "fabric/process/shared_window.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace tutti::process {
namespace {

// Page tables for all windows are filled at once up to this much in all; beyond, on first use.
constexpr size_t kPopulateBytes = size_t{1} << 30;
constexpr size_t kPage = 4096;
// A node with a core of its own looks at a slot this often, at first without a pause, before it
// makes progress elsewhere: about 40 ns for who has to come here from the same point, about 20 us
// for who has to finish a sum. Each look takes the line from who is about to write it, so that more
// of them without a pause make all wait longer.
constexpr int kEagerLooks = 32;
constexpr int kLooks = 1000;
static_assert(SharedWindow::kHeaderBytes % kPage == 0);

// The windows lie an odd number of MiB apart. Peers walk through all of them at the same pace, and
// AMD's first-level caches guess where a line is from eight bits of its address: bits 12 to 19
// xor bits 20 to 27 (Lipp et al., Take A Way, 2020). Where two windows agree in them, each access
// evicts the other's line and sums take up to four times as long; which they did in every other run
// when the system chose the addresses. This way no two of 256 windows ever agree.
constexpr size_t kApart = size_t{1} << 20;
size_t distance(size_t bytes) { return ((bytes + kApart - 1) / kApart | 1) * kApart; }

FileDescriptor make_file(size_t bytes) {
  FileDescriptor file(memfd_create("tutti-window", MFD_CLOEXEC));
  if (file.get() < 0 || ftruncate(file.get(), static_cast<off_t>(bytes)) != 0)
    throw FabricError(
        FabricError::Kind::kUnavailable, kAnyRank,
        "cannot open a window of " + std::to_string(bytes) + " bytes: " + std::strerror(errno));
  return file;
}

void map_file(const FileDescriptor& file, std::span<std::byte> at, Rank owner, bool populate) {
  // A mapping beyond the end of the file would kill whoever touches it.
  struct stat info {};
  if (fstat(file.get(), &info) != 0 || static_cast<uint64_t>(info.st_size) < at.size())
    throw FabricError(FabricError::Kind::kProtocol, owner, "a window is smaller than announced");
  if (mmap(at.data(), at.size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.get(), 0) ==
      MAP_FAILED)
    throw FabricError(FabricError::Kind::kUnavailable, owner,
                      std::string("cannot map a window: ") + std::strerror(errno));
  // Both are only advice: without huge pages or a new kernel the window is merely slower at first.
  madvise(at.data(), at.size(), MADV_HUGEPAGE);
  if (populate) madvise(at.data(), at.size(), MADV_POPULATE_WRITE);
}

}  // namespace

AddressSpace::AddressSpace(size_t bytes) : bytes_(bytes) {
  void* memory =
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw FabricError(
        FabricError::Kind::kUnavailable, kAnyRank,
        fmt::format("no room for windows of {} bytes in all: {}", bytes, std::strerror(errno)));
  data_ = static_cast<std::byte*>(memory);
}

AddressSpace::~AddressSpace() {
  if (data_) munmap(data_, bytes_);
}

SharedWindow::SharedWindow(Reactor& reactor, AddressSpace memory,
                           std::vector<std::span<std::byte>> files)
    : reactor_(reactor), memory_(std::move(memory)), files_(std::move(files)) {}

std::span<std::byte> SharedWindow::of(Rank rank) {
  return files_.at(static_cast<size_t>(rank)).subspan(kHeaderBytes);
}

void SharedWindow::post(int slot, uint64_t value) {
  TUTTI_CHECK(slot >= 0 && slot < kSlots);
  Slot& mine = slot_of(reactor_.rank(), slot);
  mine.value.store(value, std::memory_order_release);
  reactor_.fence().light();  // whoever sleeps sees the value, or we see it sleep
  if (mine.sleepers.load(std::memory_order_relaxed) != 0) wake_sleepers();
}

void SharedWindow::wake_sleepers() {
  for (Rank rank = 0; rank < static_cast<Rank>(files_.size()); ++rank) reactor_.board().ring(rank);
}

Completion SharedWindow::await(Rank rank, int slot, uint64_t value, double timeout_s) {
  TUTTI_CHECK(slot >= 0 && slot < kSlots);
  const std::atomic<uint64_t>& theirs = slot_of(rank, slot).value;
  // The fast path looks at nothing but the slot: this is where a reduction spends its time.
  const int looks = reactor_.spins() > 0 ? kLooks : 1;
  for (int i = 0; i < looks; ++i) {
    if (theirs.load(std::memory_order_acquire) >= value) return {State::kDone, rank, {}, 0};
    if (i >= kEagerLooks) __builtin_ia32_pause();
  }
  return await_slowly(rank, slot, value, timeout_s);
}

const std::atomic<uint64_t>* SharedWindow::slot(Rank rank, int slot) {
  TUTTI_CHECK(slot >= 0 && slot < kSlots);
  return &slot_of(rank, slot).value;
}

Completion SharedWindow::await_slowly(Rank rank, int slot, uint64_t value, double timeout_s) {
  Slot& theirs = slot_of(rank, slot);
  const ProcessMembership& membership = reactor_.membership();
  const auto posted = [&] { return theirs.value.load(std::memory_order_seq_cst) >= value; };
  const auto over = [&] {
    return posted() || !membership.known(rank).alive || membership.ends_waits();
  };
  theirs.sleepers.fetch_add(1, std::memory_order_seq_cst);
  std::optional<bool> ended;
  try {
    ended = reactor_.until(over, timeout_s);
  } catch (...) {
    theirs.sleepers.fetch_sub(1, std::memory_order_relaxed);
    throw;
  }
  theirs.sleepers.fetch_sub(1, std::memory_order_relaxed);
  if (posted()) return {State::kDone, rank, {}, 0};
  if (!*ended) return {State::kTimedOut, rank, {}, 0};
  return {State::kPeerLost, membership.ends_waits().value_or(rank), {}, 0};
}

std::unique_ptr<Window> open_shared_window(Reactor& reactor, size_t bytes, double timeout_s) {
  using Kind = FabricError::Kind;
  const int nodes = reactor.board().nodes();
  ProcessMembership& membership = reactor.membership();
  reactor.look();
  const auto refuse_loss = [&] {
    if (const auto lost = membership.first_lost())
      throw FabricError(Kind::kPeerLost, *lost,
                        "lost rank " + std::to_string(*lost) + " while opening a shared window");
  };
  refuse_loss();
  const size_t file_bytes = SharedWindow::kHeaderBytes + (bytes + kPage - 1) / kPage * kPage;
  auto file = std::make_shared<FileDescriptor>(make_file(file_bytes));
  reactor.announce_window(file, bytes);

  const auto complete = [&] {
    if (membership.first_lost()) return true;
    for (Rank rank = 0; rank < nodes; ++rank)
      if (reactor.windows_of(rank).empty()) return false;
    return true;
  };
  const bool all_came = reactor.until(complete, timeout_s);
  refuse_loss();
  if (!all_came)
    throw FabricError(Kind::kTimedOut, kAnyRank, "not all nodes opened the shared window in time");

  std::vector<WindowOffer> offers;
  size_t largest = 0;
  for (Rank rank = 0; rank < nodes; ++rank) {
    offers.push_back(std::move(reactor.windows_of(rank).front()));
    reactor.windows_of(rank).pop_front();
    largest = std::max(largest, SharedWindow::kHeaderBytes + offers.back().bytes);
  }
  AddressSpace memory(static_cast<size_t>(nodes) * distance(largest));
  const bool populate = largest <= kPopulateBytes / static_cast<size_t>(nodes);
  std::vector<std::span<std::byte>> files;
  for (size_t i = 0; i < offers.size(); ++i) {
    files.push_back(
        memory.all().subspan(i * distance(largest), SharedWindow::kHeaderBytes + offers[i].bytes));
    map_file(offers[i].memory, files.back(), static_cast<Rank>(i), populate);
  }
  return std::make_unique<SharedWindow>(reactor, std::move(memory), std::move(files));
}

}  // namespace tutti::process
