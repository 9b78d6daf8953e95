#include "fabric/process/lobby.h"

#include <fmt/format.h>
#include <sodium.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "core/error.h"
#include "fabric/process/process_clock.h"

namespace tutti::process {
namespace {

using Type = ControlMessage::Type;

constexpr std::string_view kEveryInterface = "0.0.0.0";  // an address to listen on, not to dial
constexpr size_t kTokenBytes = 16;
constexpr size_t kMostStrangers = 32;
constexpr int64_t kPatienceNs = 5'000'000'000;
constexpr size_t kMostHeard = kFrameHeaderBytes + kTokenLimit;

std::string make_token() {
  if (sodium_init() < 0)
    throw FabricError(FabricError::Kind::kUnavailable, kAnyRank, "libsodium does not start");
  std::array<unsigned char, kTokenBytes> bytes{};
  randombytes_buf(bytes.data(), bytes.size());
  std::array<char, 2 * kTokenBytes + 1> text{};
  sodium_bin2hex(text.data(), text.size(), bytes.data(), bytes.size());
  return text.data();
}

// In constant time, so that how long a refusal takes says nothing about the token.
bool same_token(const std::string& a, const std::string& b) {
  return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

void refuse(const FileDescriptor& connection, const std::string& reason) {
  const std::string frame = encode({Type::kRefused, kAnyRank, 0, kProtocol, reason});
  // A few bytes into an empty buffer: they fit, or the other side is gone.
  [[maybe_unused]] const ssize_t sent =
      send(connection.get(), frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  shutdown(connection.get(), SHUT_WR);
}

Lobby::Lobby(const HostPort& where) : socket_(listen_on(where)), token_(make_token()) {}

std::string Lobby::address() const {
  HostPort address = local_address(socket_);
  if (address.host == kEveryInterface) {
    std::array<char, 256> name{};
    if (gethostname(name.data(), name.size() - 1) == 0) address.host = name.data();
  }
  return to_text(address);
}

void Lobby::watch(std::vector<pollfd>& polled) const {
  polled.push_back({socket_.get(), POLLIN, 0});
  for (const Stranger& stranger : strangers_)
    polled.push_back({stranger.connection.get(), POLLIN, 0});
}

void Lobby::close() {
  socket_.reset();
  strangers_.clear();
}

void Lobby::accept_all() {
  while (true) {
    FileDescriptor connection(
        accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection.get() < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return;
    }
    // Who has waited longest has had most time to speak.
    if (strangers_.size() == kMostStrangers) strangers_.erase(strangers_.begin());
    strangers_.push_back({std::move(connection), {}, monotonic_ns() + kPatienceNs});
  }
}

Lobby::Verdict Lobby::hear(Stranger& stranger) const {
  std::array<char, kMostHeard> chunk;
  const size_t room = kMostHeard - stranger.heard.size();
  const ssize_t got = recv(stranger.connection.get(), chunk.data(), room, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
    return monotonic_ns() < stranger.deadline_ns ? Verdict::kWaits : Verdict::kLeaves;
  if (got <= 0) return Verdict::kLeaves;
  stranger.heard.append(chunk.data(), static_cast<size_t>(got));
  return judge(stranger);
}

Lobby::Verdict Lobby::judge(const Stranger& stranger) const {
  FrameReader reader;
  reader.append(stranger.heard);
  try {
    const auto message = reader.next();
    if (!message) return stranger.heard.size() < kMostHeard ? Verdict::kWaits : Verdict::kLeaves;
    if (message->type != Type::kJoin || !reader.empty()) throw DataError("not a request to join");
    if (message->number != kProtocol) {
      refuse(stranger.connection,
             fmt::format("the launcher speaks protocol {}, this node protocol {}; use the same "
                         "version of tutti on every machine",
                         kProtocol, message->number));
    } else if (!same_token(message->body, token_)) {
      refuse(stranger.connection, "the token is wrong; use the one that the launcher printed");
    } else {
      return Verdict::kMayEnter;
    }
  } catch (const DataError& error) {
    refuse(stranger.connection, error.what());
  }
  return Verdict::kLeaves;
}

std::vector<Lobby::Guest> Lobby::serve() {
  accept_all();
  std::vector<Guest> guests;
  std::erase_if(strangers_, [&](Stranger& stranger) {
    const Verdict verdict = hear(stranger);
    if (verdict != Verdict::kMayEnter) return verdict == Verdict::kLeaves;
    try {
      std::string interface = interface_of(stranger.connection);
      std::string origin = to_text(peer_address(stranger.connection));
      guests.push_back({std::move(stranger.connection), std::move(origin), std::move(interface)});
    } catch (const FabricError& error) {
      refuse(stranger.connection, error.what());
    }
    return true;
  });
  return guests;
}

}  // namespace tutti::process
