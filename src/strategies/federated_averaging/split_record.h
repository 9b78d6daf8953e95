// What the run record says about how the data is split among clients.
#pragma once

#include "data/client_split.h"
#include "strategies/strategy.h"

namespace tutti::federated_averaging {

// The label histogram of each client, or of kMostListed of them, evenly chosen; over all of them
// how many samples and labels they have, and how far their labels are from those of all data.
inline constexpr size_t kMostListed = 100;
void record_split(Context& context, const ClientSplit& split);

}  // namespace tutti::federated_averaging
