// Returns how many seeds a test tries. `./scripts/test --thorough` sets TUTTI_THOROUGH, which
// allows many more than a usual run has time for.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace tutti {

inline uint64_t seeds(uint64_t usual, uint64_t thorough) {
  const char* asked = std::getenv("TUTTI_THOROUGH");
  return asked && *asked ? thorough : usual;
}

}  // namespace tutti
