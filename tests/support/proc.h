// What /proc says of other processes: who descends from whom, who is alive, which files they hold.
#pragma once

#include <sys/shm.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace tutti::testing_support {

struct ProcessStatus {
  char state = '?';
  pid_t parent = 0;
  uint64_t started = 0;  // in ticks since the machine started
};

// Fields 3, 4 and 22 of /proc/PID/stat; the name before them may hold anything, so it is skipped
// from the back.
inline bool status_of(pid_t pid, ProcessStatus& status) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return false;
  std::istringstream fields(text.substr(name_end + 1));
  fields >> status.state >> status.parent;
  std::string skipped;
  for (int field = 5; field < 22; ++field) fields >> skipped;
  fields >> status.started;
  return static_cast<bool>(fields);
}

// A zombie that nobody has reaped yet is gone.
inline bool is_alive(pid_t pid) {
  ProcessStatus status;
  return status_of(pid, status) && status.state != 'Z' && status.state != 'X';
}

// In the order in which they were started, which for nodes is that of their ranks.
inline std::vector<pid_t> children_of(pid_t parent) {
  std::vector<std::pair<uint64_t, pid_t>> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto pid = static_cast<pid_t>(std::stoi(name));
    ProcessStatus status;
    if (status_of(pid, status) && status.parent == parent && status.state != 'Z')
      found.emplace_back(status.started, pid);
  }
  std::sort(found.begin(), found.end());
  std::vector<pid_t> children;
  for (const auto& [started, pid] : found) children.push_back(pid);
  return children;
}

// Names below /dev/shm or `temporary` that a process has mapped or open: they would outlive it.
inline std::string named_files_of(pid_t pid, const std::string& temporary) {
  const std::string folder = "/proc/" + std::to_string(pid);
  std::string found;
  const auto consider = [&](const std::string& name) {
    const bool named = name.starts_with("/dev/shm/") || name.starts_with(temporary + "/");
    if (named && !name.ends_with("(deleted)")) found += name + "\n";
  };
  std::ifstream maps(folder + "/maps");
  for (std::string line; std::getline(maps, line);)
    if (const size_t name = line.find('/'); name != std::string::npos) consider(line.substr(name));
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/fd", failed)) {
    std::error_code closed;
    consider(std::filesystem::read_symlink(entry.path(), closed).string());
  }
  return found;
}

// Creators of the System V shared memory segments that exist.
inline std::set<pid_t> owners_of_segments() {
  std::set<pid_t> owners;
  shm_info info{};
  const int last = shmctl(0, SHM_INFO, reinterpret_cast<shmid_ds*>(&info));
  for (int index = 0; index <= last; ++index) {
    shmid_ds segment{};
    if (shmctl(index, SHM_STAT, &segment) >= 0) owners.insert(segment.shm_cpid);
  }
  return owners;
}

}  // namespace tutti::testing_support
