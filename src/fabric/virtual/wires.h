// Properties of the wires that hold whichever solver shares them.
#pragma once

namespace tutti::simulation {

// What TCP over Ethernet leaves of the wire. How close the model comes with it, latency as given
// and no cross-traffic is in docs/validation.md; SimGrid's own default multiplies latency by 13
// instead.
inline constexpr double kBandwidthFactor = 0.957;

}  // namespace tutti::simulation
