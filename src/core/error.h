// What can end a run, as exception types, and CHECK for what cannot happen unless there is a bug.
//
// Expected events (a straggler missing, a deadline that passed where the caller asked for one) are
// return values, not exceptions. A message says what happened, where, and what to do about it.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace tutti {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A job, a command line or an input file that cannot be used. `key` names the setting at fault.
class ConfigError : public Error {
 public:
  ConfigError(std::string key, const std::string& message)
      : Error(message), key_(std::move(key)) {}
  const std::string& key() const { return key_; }

 private:
  std::string key_;
};

// A data file or a message that is corrupt, truncated or unreadable.
class DataError : public Error {
 public:
  using Error::Error;
};

// The cluster failed this node. `peer` is the rank concerned, or -1 when no single one is.
class FabricError : public Error {
 public:
  enum class Kind { kPeerLost, kTimedOut, kDeadlock, kProtocol, kUnavailable };
  FabricError(Kind kind, int peer, const std::string& message)
      : Error(message), kind_(kind), peer_(peer) {}
  Kind kind() const { return kind_; }
  int peer() const { return peer_; }

 private:
  Kind kind_;
  int peer_;
};

// The loss or a parameter became NaN or infinite.
class DivergedError : public Error {
 public:
  using Error::Error;
};

// Somebody asked the run to stop (Ctrl-C, SIGTERM). The run record is kept.
class InterruptedError : public Error {
 public:
  InterruptedError() : Error("interrupted") {}
};

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace tutti

#define TUTTI_CHECK(condition) \
  ((condition) ? void(0) : ::tutti::check_failed(#condition, __FILE__, __LINE__))
