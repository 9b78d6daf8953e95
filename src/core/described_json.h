// Descriptions (core/described.h) written as JSON, and read from it with checks.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "core/described.h"

namespace tutti {

// Thrown where JSON is not what the description says. Whoever reads a file catches it and names the
// file and the remedy.
struct Mismatch {
  std::string place;    // "nodes[3].rank"; empty: the whole
  std::string problem;  // "is string, not a number"
};

// Calls `write` with a visitor that writes what it visits.
nlohmann::json write_described(const std::function<void(RecordVisitor&)>& write);
// Calls `read` with a visitor that fills in what it visits. Throws Mismatch.
void read_described(const nlohmann::json& whole, const std::function<void(RecordVisitor&)>& read);

template <class T>
nlohmann::json json_of(const T& value) {
  // Descriptions take what a reader changes; a writer changes nothing (RecordVisitor::reads).
  return write_described(
      [&](RecordVisitor& visitor) { describe(visitor, const_cast<T&>(value)); });
}

template <class T>
T described_by(const nlohmann::json& whole) {
  T value{};
  read_described(whole, [&](RecordVisitor& visitor) { describe(visitor, value); });
  return value;
}

}  // namespace tutti
