#include "fabric/process/tcp.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "core/error.h"
#include "fabric/process/process_clock.h"

namespace tutti::process {
namespace {

constexpr int kBacklog = 64;
constexpr int kSilence_ms = 1000;
constexpr int kDialRoundMs = 50;

[[noreturn]] void fail(const std::string& what, const std::string& why) {
  throw FabricError(FabricError::Kind::kUnavailable, kAnyRank, what + ": " + why);
}

sockaddr_in resolve(const HostPort& where) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(where.host.c_str(), nullptr, &hints, &found);
  if (error != 0) fail("cannot find the host " + where.host, gai_strerror(error));
  sockaddr_in address{};
  std::memcpy(&address, found->ai_addr, sizeof address);
  freeaddrinfo(found);
  address.sin_port = htons(static_cast<uint16_t>(where.port));
  return address;
}

FileDescriptor make_socket() {
  FileDescriptor made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (made.get() < 0) fail("cannot make a socket", std::strerror(errno));
  return made;
}

HostPort from_system(const sockaddr_in& address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  return {text.data(), ntohs(address.sin_port)};
}

void set_option(const FileDescriptor& socket, int level, int option, int value) {
  setsockopt(socket.get(), level, option, &value, sizeof value);
}

}  // namespace

HostPort parse_host_port(const std::string& text, const std::string& key) {
  const size_t colon = text.rfind(':');
  HostPort result;
  if (colon != std::string::npos && colon > 0) {
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, result.port);
    result.host = text.substr(0, colon);
    if (error == std::errc() && rest == end && result.port >= 0 && result.port <= 65535)
      return result;
  }
  throw ConfigError(key, key + " = \"" + text +
                             "\" is no address; write it as host:port, such as " +
                             "127.0.0.1:4000");
}

FileDescriptor listen_on(const HostPort& where) {
  const sockaddr_in address = resolve(where);
  FileDescriptor socket = make_socket();
  set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(socket.get(), kBacklog) != 0)
    fail("cannot listen on " + to_text(where), std::strerror(errno));
  return socket;
}

FileDescriptor dial(const HostPort& where, double timeout_s, const std::atomic<bool>* stop) {
  const int64_t deadline_ns = deadline_after(timeout_s);
  const sockaddr_in address = resolve(where);
  FileDescriptor socket = make_socket();
  int error = 0;
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    error = errno;
  // An interrupted connect goes on by itself, as one that would have blocked does.
  if (error == EINPROGRESS || error == EINTR) {
    pollfd wait{socket.get(), POLLOUT, 0};
    // In short rounds: the signal that raises `stop` may come just before a wait that it should
    // end.
    while (poll(&wait, 1, kDialRoundMs) != 1 && monotonic_ns() < deadline_ns)
      if (stop && stop->load()) throw InterruptedError();
    socklen_t bytes = sizeof error;
    error = ETIMEDOUT;
    if (wait.revents != 0) getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
  }
  if (error != 0) fail("cannot connect to " + to_text(where), std::strerror(error));
  return socket;
}

HostPort local_address(const FileDescriptor& socket) {
  sockaddr_in address{};
  socklen_t bytes = sizeof address;
  getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &bytes);
  return from_system(address);
}

HostPort peer_address(const FileDescriptor& socket) {
  sockaddr_in address{};
  socklen_t bytes = sizeof address;
  getpeername(socket.get(), reinterpret_cast<sockaddr*>(&address), &bytes);
  return from_system(address);
}

std::string to_text(const HostPort& address) {
  return address.host + ":" + std::to_string(address.port);
}

std::string interface_of(const FileDescriptor& connection) {
  const std::string host = local_address(connection).host;
  // All of 127/8 is the loopback interface's, though it names one of them only.
  const bool loopback = host.starts_with("127.");
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) fail("cannot list the network interfaces", std::strerror(errno));
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(all, freeifaddrs);
  for (const ifaddrs* i = all; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in address{};
    std::memcpy(&address, i->ifa_addr, sizeof address);
    const std::string own = from_system(address).host;
    if (own == host || (loopback && own.starts_with("127."))) return i->ifa_name;
  }
  fail("no network interface has the address " + host, "it is gone");
}

void break_when_silent(const FileDescriptor& connection) {
  set_option(connection, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(connection, IPPROTO_TCP, TCP_USER_TIMEOUT, kSilence_ms);
  // For the time in which nothing is sent.
  set_option(connection, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(connection, IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set_option(connection, IPPROTO_TCP, TCP_KEEPINTVL, 1);
}

}  // namespace tutti::process
