// Killing the launcher, or any node, with SIGKILL leaves no process and no memory behind.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "core/random.h"
#include "fabric/exchange.h"
#include "fabric/process/process_fabric.h"

namespace tutti {
namespace {

constexpr int kNodes = 3;

struct Shared {
  std::atomic<pid_t> pids[kNodes];
};

Shared& shared() {
  static auto* memory = static_cast<Shared*>(
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  return *memory;
}

// Everything that takes memory: messages of all sizes, also unexpected ones, and a window.
std::string keep_busy(Node& node) {
  Endpoint& endpoint = node.endpoint();
  const Rank self = endpoint.rank();
  shared().pids[self] = getpid();
  node.membership().end_waits_on_any_loss(true);
  endpoint.open_window(100'000, 10);
  std::vector<std::byte> out(300'000), in(300'000);
  for (uint64_t step = 0;; ++step) {
    const size_t size = step % 10 == 9 ? out.size() : 2000;
    std::vector<Handle> handles;
    const Tag tag(Purpose::kUser, Tag::wrapped(step));
    for (Rank peer = 0; peer < kNodes; ++peer)
      handles.push_back(endpoint.send(peer, tag, {out.data(), size}));
    for (Rank peer = 0; peer < kNodes; ++peer)
      receive(node, peer, tag, {in.data(), size});
    for (Handle& handle : handles) finish(node, handle);
  }
}

std::set<pid_t> owners_of_segments() {
  std::set<pid_t> owners;
  shm_info info{};
  const int last = shmctl(0, SHM_INFO, reinterpret_cast<shmid_ds*>(&info));
  for (int index = 0; index <= last; ++index) {
    shmid_ds segment{};
    if (shmctl(index, SHM_STAT, &segment) >= 0) owners.insert(segment.shm_cpid);
  }
  return owners;
}

// Named shared memory or temporary files would outlive a kill: nobody may map any.
std::string named_mappings(pid_t pid) {
  if (pid == 0) return "";
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  std::string found;
  for (std::string line; std::getline(maps, line);) {
    const bool named =
        line.find("/dev/shm/") != std::string::npos || line.find(" /tmp/") != std::string::npos;
    const bool own = line.find(program) != std::string::npos;  // the tree may lie below /tmp
    if (named && !own && line.find("(deleted)") == std::string::npos) found += line + "\n";
  }
  return found;
}

// Reaps our orphaned descendants until there are none; false after five seconds.
bool all_gone(std::set<pid_t>& gone) {
  for (int i = 0; i < 500; ++i) {
    pid_t reaped;
    while ((reaped = waitpid(-1, nullptr, WNOHANG)) > 0) gone.insert(reaped);
    if (reaped < 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// A process of its own, not a thread: whoever forks beside a thread may copy a lock that it holds.
pid_t kill_later(const std::atomic<pid_t>& victim, double delay_s) {
  const pid_t killer = fork();
  if (killer != 0) return killer;
  alarm(60);  // should the victim never start
  while (victim == 0) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::duration<double>(delay_s));
  kill(victim, SIGKILL);
  _exit(0);
}

TEST(ProcessOrphans, NothingOutlivesTheLauncher) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  shared();
  Random random(1, Stream::kTest);
  for (int repetition = 0; repetition < 60; ++repetition) {
    for (auto& pid : shared().pids) pid = 0;
    const pid_t launcher = fork();
    if (launcher == 0) {
      const std::atomic<bool> stop{false};
      make_process_fabric({"a", "b", "c"})->run(keep_busy, stop);
      _exit(0);
    }
    // Sometimes while the nodes start, sometimes in full swing.
    const double delay_s = (repetition % 2 ? 0.015 : 0.15) * random.uniform();
    std::this_thread::sleep_for(std::chrono::duration<double>(delay_s));
    for (const auto& pid : shared().pids) EXPECT_EQ(named_mappings(pid), "");
    kill(launcher, SIGKILL);
    std::set<pid_t> gone;
    ASSERT_TRUE(all_gone(gone)) << "after " << delay_s << " s";
    const std::set<pid_t> owners = owners_of_segments();
    for (const pid_t pid : gone) EXPECT_FALSE(owners.contains(pid)) << "after " << delay_s << " s";
  }
}

TEST(ProcessOrphans, NothingOutlivesANode) {
  shared();
  Random random(2, Stream::kTest);
  for (int repetition = 0; repetition < 10; ++repetition) {
    for (auto& pid : shared().pids) pid = 0;
    const double delay_s = 0.05 * random.uniform();
    const pid_t killer = kill_later(shared().pids[1], delay_s);
    const std::atomic<bool> stop{false};
    const auto outcomes = make_process_fabric({"a", "b", "c"})->run(keep_busy, stop);
    ASSERT_EQ(waitpid(killer, nullptr, 0), killer);
    EXPECT_EQ(outcomes[1].kind, NodeOutcome::Kind::kLost);
    for (const size_t rank : {0u, 2u}) EXPECT_EQ(outcomes[rank].lost_peer, 1) << rank;
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a node was not reaped";
    const std::set<pid_t> owners = owners_of_segments();
    for (const auto& pid : shared().pids) EXPECT_FALSE(owners.contains(pid));
  }
}

}  // namespace
}  // namespace tutti
