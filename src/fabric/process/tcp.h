// TCP between hosts, for the control connections: addresses, listening, dialling, and a connection
// that breaks soon after its other side is gone.
#pragma once

#include <atomic>
#include <string>

#include "fabric/process/control_socket.h"

namespace tutti::process {

// "host:port", IPv4 or a name. Throws ConfigError naming `key` when it cannot be one.
struct HostPort {
  std::string host;
  int port = 0;
};
HostPort parse_host_port(const std::string& text, const std::string& key);

// Throws FabricError with the system's own words. Port 0: a free one.
FileDescriptor listen_on(const HostPort& where);
// Throws InterruptedError when `stop` is raised meanwhile.
FileDescriptor dial(const HostPort& where, double timeout_s,
                    const std::atomic<bool>* stop = nullptr);

HostPort local_address(const FileDescriptor& socket);
HostPort peer_address(const FileDescriptor& socket);
std::string to_text(const HostPort& address);

// The network interface that has the local address of a connection; messages take it too.
std::string interface_of(const FileDescriptor& connection);

// From now on the connection breaks when what was sent stays unacknowledged for 1 s. That is for
// the other side's system to do, so a node that computes for an hour does not look dead.
void break_when_silent(const FileDescriptor& connection);

}  // namespace tutti::process
