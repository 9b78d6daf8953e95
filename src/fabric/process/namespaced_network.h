// A network of this machine's own making, for measuring and testing what happens between hosts:
// each host is a network namespace, joined to a bridge by a link whose bandwidth can be set.
//
// Namespaces have no names here, they live as long as the processes that hold them, and these die
// with their maker: nothing is left behind, whoever is killed. Needs root.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace tutti::process {

class NamespacedNetwork {
 public:
  // Why there can be none here; empty when there can.
  static std::string why_not();

  // Throws FabricError with what the system said.
  explicit NamespacedNetwork(int hosts);
  ~NamespacedNetwork();
  NamespacedNetwork(const NamespacedNetwork&) = delete;
  NamespacedNetwork& operator=(const NamespacedNetwork&) = delete;

  int hosts() const { return static_cast<int>(holders_.size()) - 1; }
  static std::string address(int host);
  // The calling thread, and what it starts, is on that host from now on.
  void enter(int host) const;
  // Both directions of every host's link, by a token bucket; 0: as fast as it goes.
  void shape(double bits_per_s) const;
  void cut(int host) const;  // its link goes down

 private:
  void run(size_t holder, const std::string& commands) const;

  std::vector<pid_t> holders_;  // of the hosts, then of the bridge
};

}  // namespace tutti::process
