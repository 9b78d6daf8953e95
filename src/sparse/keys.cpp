#include "sparse/keys.h"

#include <fmt/format.h>

namespace tutti {

std::string fault_of_keys(std::span<const uint64_t> keys, uint64_t limit) {
  for (size_t i = 1; i < keys.size(); ++i)
    if (keys[i] <= keys[i - 1])
      return fmt::format("key {} after key {}: keys must ascend", keys[i], keys[i - 1]);
  if (limit > 0 && !keys.empty() && keys.back() >= limit)
    return fmt::format("key {}, but there are {} rows", keys.back(), limit);
  return "";
}

void split_keys(std::span<const uint64_t> keys, size_t servers,
                std::vector<std::vector<uint32_t>>& positions) {
  positions.resize(servers);
  for (std::vector<uint32_t>& of_server : positions) of_server.clear();
  for (size_t i = 0; i < keys.size(); ++i)
    positions[server_of(keys[i], servers)].push_back(static_cast<uint32_t>(i));
}

}  // namespace tutti
