// A log that belongs to one node. Times are the node's own clock, so a virtual run logs virtual
// time and replays byte for byte.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace tutti {

class Log {
 public:
  using Sink = std::function<void(std::string_view line)>;
  using Now = std::function<double()>;

  Log() = default;  // discards everything
  Log(Sink sink, Now now) : sink_(std::move(sink)), now_(std::move(now)) {}

  void info(std::string_view message) const { write("info", message); }
  void warn(std::string_view message) const { write("warn", message); }

 private:
  void write(std::string_view level, std::string_view message) const;
  Sink sink_;
  Now now_;
};

}  // namespace tutti
