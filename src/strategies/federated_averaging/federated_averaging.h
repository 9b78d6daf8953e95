// Federated averaging: a server sends its parameters to some of many clients, each trains on its
// own samples for a while, and the server averages what they send back (McMahan et al.,
// "Communication- efficient learning of deep networks from decentralized data", AISTATS 2017).
//
// Clients are many and idle nearly always, so they are records, and workers act for them in turn.
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace tutti {

std::unique_ptr<Strategy> make_federated_averaging();
std::vector<Variant> federated_averaging_variants();

}  // namespace tutti
