// The date that records carry.
#pragma once

#include <array>
#include <ctime>
#include <string>

namespace tutti {

// "2026-11-20", by UTC.
inline std::string date_of_today() {
  const std::time_t now = std::time(nullptr);
  std::array<char, 16> text{};
  std::strftime(text.data(), text.size(), "%F", std::gmtime(&now));
  return text.data();
}

}  // namespace tutti
