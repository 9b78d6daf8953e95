// A server in a chain. One that came back is another member: it has forgotten everything.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/node.h"

namespace tutti::parameter_server {

struct Member {
  int32_t rank = kAnyRank;
  uint32_t incarnation = 0;
  friend bool operator==(const Member&, const Member&) = default;
};

// Copies of a shard, its own included, and one that is about to have it.
inline constexpr int kMostMembers = 8;

// Who holds a shard, its head first. Every change of that is a new epoch.
struct Order {
  uint32_t epoch = 0;
  std::vector<Member> members;
};

}  // namespace tutti::parameter_server
