#include "core/log.h"

#include <fmt/format.h>

namespace tutti {

void Log::write(std::string_view level, std::string_view message) const {
  if (sink_) sink_(fmt::format("{:12.6f} {} {}\n", now_ ? now_() : 0.0, level, message));
}

}  // namespace tutti
