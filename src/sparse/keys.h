// Keys of rows: 64 bits, in lists that ascend strictly, so that both sides can walk them side by
// side and a key can occur only once.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tutti {

// Spreads keys that lie close together over all 64 bits (the finaliser of splitmix64).
inline uint64_t mixed(uint64_t key) {
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9u;
  key = (key ^ (key >> 27)) * 0x94d049bb133111ebu;
  return key ^ (key >> 31);
}

// Which of `servers` holds a key: by the upper bits, since tables use the lower ones.
inline size_t server_of(uint64_t key, size_t servers) {
  return static_cast<size_t>((mixed(key) >> 32) * servers >> 32);
}

// Why these cannot be the keys of a message, or "": not ascending, twice the same, `limit` or
// above (0: any key will do).
std::string fault_of_keys(std::span<const uint64_t> keys, uint64_t limit);

// The positions in `keys` of those that each server holds, in order.
void split_keys(std::span<const uint64_t> keys, size_t servers,
                std::vector<std::vector<uint32_t>>& positions);

}  // namespace tutti
