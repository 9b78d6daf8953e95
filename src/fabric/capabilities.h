// What a fabric can do for a strategy on a given cluster. Strategies ask for these and never for
// the name of a fabric, so that a new fabric needs no change in them.
#pragma once

#include "fabric/cluster.h"

namespace tutti {

struct Capabilities {
  // The cluster declares the speed and host of each node and the network between them. Otherwise
  // they are what the machines have, and are not known before a run.
  bool declared_hosts = false;
  // Each host has the memory that the cluster declares, and no more. Otherwise the nodes of a
  // machine share what it has.
  bool declared_memory = false;
  // All nodes are processes of one machine: they share its cores and send through its memory.
  bool one_machine = false;
  // All workers can write the same memory at the same moment.
  bool concurrent_memory = false;
};

Capabilities capabilities_of(const ClusterConfig& cluster);

}  // namespace tutti
