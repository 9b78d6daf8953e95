// Who shares a host with whom. Nodes that the launcher forked are on one host; each that joined is
// taken for a host of its own, and is reached over the network.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "fabric/tag.h"

namespace tutti::process {

struct Neighbourhood {
  std::vector<uint8_t> joined;  // per rank
  std::string interface;        // of this host, towards the others
  bool near(Rank a, Rank b) const {
    return joined[static_cast<size_t>(a)] == 0 && joined[static_cast<size_t>(b)] == 0;
  }
  bool one_host() const {
    return std::none_of(joined.begin(), joined.end(), [](uint8_t j) { return j != 0; });
  }
};

}  // namespace tutti::process
