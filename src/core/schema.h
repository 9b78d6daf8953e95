// One description of a component's settings, visited by whoever reads, writes or documents them.
//
// A component owns a plain struct with defaults and one function that names each field to a
// Visitor. The same function then parses TOML, writes the resolved job and generates
// docs/job_reference.md, so the three cannot drift apart.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.h"

namespace tutti {

struct Bounds {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
};
inline constexpr Bounds kPositive{std::numeric_limits<double>::min()};
inline constexpr Bounds kNotNegative{0};
inline constexpr Bounds kAtLeastOne{1};
inline constexpr Bounds kFraction{0, 1};
// Of shares that are kept from step to step: with all of it kept nothing would be forgotten.
inline constexpr Bounds kBelowOne{0, 0.999999999};

// How something is divided: into so many parts, at these places, or as a planner finds best.
struct Division {
  int64_t parts = 0;            // 0: as many as there are nodes for them
  std::vector<int64_t> places;  // where the parts after the first begin; empty: not given
  bool automatic = false;

  bool operator==(const Division&) const = default;
};

class Visitor {
 public:
  virtual ~Visitor() = default;

  virtual void field(const char* key, bool& value, const char* help) = 0;
  virtual void field(const char* key, int64_t& value, Bounds bounds, const char* help) = 0;
  virtual void field(const char* key, double& value, Bounds bounds, const char* help) = 0;
  virtual void field(const char* key, std::string& value, const char* help) = 0;
  virtual void field(const char* key, std::vector<int64_t>& value, Bounds bounds,
                     const char* help) = 0;
  virtual void field(const char* key, std::vector<double>& value, Bounds bounds,
                     const char* help) = 0;
  // A number in the base unit, or a text with a unit. Never negative.
  virtual void quantity(const char* key, double& value, Unit unit, const char* help) = 0;
  // One word out of a fixed list.
  virtual void choice(const char* key, std::string& value,
                      const std::vector<std::string_view>& allowed, const char* help) = 0;
  // A table below this one.
  virtual void table(const char* key, const std::function<void(Visitor&)>& inside,
                     const char* help) = 0;
  // A component chosen by name: `key = "name"`, or `key = { kind = "name", ... }` with settings.
  virtual void component(const char* key, std::string& kind,
                         const std::vector<std::string_view>& allowed,
                         const std::function<void(Visitor&)>& inside, const char* help) = 0;
  // An array of tables. `inside(visitor, i)` visits element i, appending it first when i == size.
  virtual void tables(const char* key, size_t size,
                      const std::function<void(Visitor&, size_t)>& inside, const char* help) = 0;
  // A number of parts, a list of places, or "auto".
  virtual void division(const char* key, Division& value, const char* help) = 0;
};

// An enum whose values a job names by words has a function `words` beside it, which lists them in
// the order of the values, from 0:
//
//   enum class Norm { kGroup, kBatch };
//   constexpr auto words(Norm) { return WordList<2>{"group", "batch"}; }
template <size_t count>
using WordList = std::array<std::string_view, count>;

template <class Enum>
concept Worded = requires(Enum value) { words(value)[0]; };

template <Worded Enum>
constexpr std::string_view word_of(Enum value) {
  return words(value)[static_cast<size_t>(value)];
}

// The value that `word` names; `value` itself when it names none.
template <Worded Enum>
Enum value_of(std::string_view word, Enum value) {
  const auto all = words(value);
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i] == word) return static_cast<Enum>(i);
  return value;
}

// Visitor::choice and Visitor::component of an enum: here text becomes a value, and back.
template <Worded Enum>
void choice(Visitor& visitor, const char* key, Enum& value,
            const std::vector<std::string_view>& allowed, const char* help) {
  std::string word(word_of(value));
  visitor.choice(key, word, allowed, help);
  value = value_of(word, value);
}
template <Worded Enum>
void choice(Visitor& visitor, const char* key, Enum& value, const char* help) {
  const auto all = words(value);
  choice(visitor, key, value, {all.begin(), all.end()}, help);
}
template <Worded Enum>
void component(Visitor& visitor, const char* key, Enum& kind,
               const std::function<void(Visitor&)>& inside, const char* help) {
  const auto all = words(kind);
  std::string word(word_of(kind));
  visitor.component(
      key, word, {all.begin(), all.end()},
      [&](Visitor& inner) {
        kind = value_of(word, kind);
        inside(inner);
      },
      help);
}

// The entry of `known` nearest to `word` by edit distance, or "" when none is close.
std::string nearest(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace tutti
