#include "fabric/process/shared_window.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace tutti::process {
namespace {

// Page tables for all windows are filled at once up to this much in all; beyond, on first use.
constexpr size_t kPopulateBytes = size_t{1} << 30;
constexpr size_t kPage = 4096;  // also the room in which windows are staggered
static_assert(SharedWindow::kHeaderBytes % kPage == 0);

// Windows begin at different places of a page. Peers walk through all of them at the same pace, and
// without this sums took three times as long in about every other run. The likely cause is a cache
// that guesses its way from some bits of an address (AMD's do) and mistakes one window for another.
size_t stagger_bytes(Rank rank) { return static_cast<size_t>(rank % 7) * 576; }

FileDescriptor make_file(size_t bytes) {
  FileDescriptor file(memfd_create("tutti-window", MFD_CLOEXEC));
  if (file.get() < 0 || ftruncate(file.get(), static_cast<off_t>(bytes)) != 0)
    throw FabricError(
        FabricError::Kind::kUnavailable, kAnyRank,
        "cannot open a window of " + std::to_string(bytes) + " bytes: " + std::strerror(errno));
  return file;
}

std::span<std::byte> map_file(const FileDescriptor& file, size_t bytes, Rank owner, bool populate) {
  // A mapping beyond the end of the file would kill whoever touches it.
  struct stat info {};
  if (fstat(file.get(), &info) != 0 || static_cast<uint64_t>(info.st_size) < bytes)
    throw FabricError(FabricError::Kind::kProtocol, owner, "a window is smaller than announced");
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED)
    throw FabricError(FabricError::Kind::kUnavailable, owner,
                      std::string("cannot map a window: ") + std::strerror(errno));
  // Both are only advice: without huge pages or a new kernel the window is merely slower at first.
  madvise(memory, bytes, MADV_HUGEPAGE);
  if (populate) madvise(memory, bytes, MADV_POPULATE_WRITE);
  return {static_cast<std::byte*>(memory), bytes};
}

}  // namespace

SharedWindow::SharedWindow(Reactor& reactor, std::vector<std::span<std::byte>> files)
    : reactor_(reactor), files_(std::move(files)) {}

SharedWindow::~SharedWindow() {
  for (const auto& file : files_) munmap(file.data(), file.size());
}

std::span<std::byte> SharedWindow::of(Rank rank) {
  const auto file = files_.at(static_cast<size_t>(rank));
  return file.subspan(kHeaderBytes + stagger_bytes(rank), file.size() - kHeaderBytes - kPage);
}

void SharedWindow::post(int slot, uint64_t value) {
  TUTTI_CHECK(slot >= 0 && slot < kSlots);
  Slot& mine = slot_of(reactor_.rank(), slot);
  // Sequentially consistent, with the sleeper's own order: it sees the value, or we see it sleep.
  mine.value.store(value, std::memory_order_seq_cst);
  if (mine.sleepers.load(std::memory_order_seq_cst) != 0) wake_sleepers();
}

void SharedWindow::wake_sleepers() {
  for (Rank rank = 0; rank < static_cast<Rank>(files_.size()); ++rank) reactor_.board().ring(rank);
}

Completion SharedWindow::await(Rank rank, int slot, uint64_t value, double timeout_s) {
  TUTTI_CHECK(slot >= 0 && slot < kSlots);
  const std::atomic<uint64_t>& theirs = slot_of(rank, slot).value;
  // The fast path looks at nothing but the slot: this is where a reduction spends its time.
  for (int i = 0; i <= reactor_.spins(); ++i) {
    if (theirs.load(std::memory_order_acquire) >= value) return {State::kDone, rank, {}, 0};
    __builtin_ia32_pause();
  }
  return await_slowly(rank, slot, value, timeout_s);
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
  const size_t file_bytes =
      SharedWindow::kHeaderBytes + kPage + (bytes + kPage - 1) / kPage * kPage;
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

  std::vector<std::span<std::byte>> files;
  for (Rank rank = 0; rank < nodes; ++rank) {
    const WindowOffer offer = std::move(reactor.windows_of(rank).front());
    reactor.windows_of(rank).pop_front();
    const size_t total = SharedWindow::kHeaderBytes + kPage + offer.bytes;
    const bool populate = total <= kPopulateBytes / static_cast<size_t>(nodes);
    files.push_back(map_file(offer.memory, total, rank, populate));
  }
  return std::make_unique<SharedWindow>(reactor, std::move(files));
}

}  // namespace tutti::process
