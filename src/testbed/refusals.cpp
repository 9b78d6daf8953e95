#include "testbed/refusals.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <utility>

#include "core/printable.h"

namespace tutti {
namespace {

constexpr size_t kLeastRoom = 24;  // for a reason beside the names of those it keeps away

// The first part of a reason, without the setting that the strategy's name says already, cut at a
// word where there is no room.
std::string gist(const std::string& reason, size_t room) {
  static const std::regex kSetting("^(strategy\\.\\w+: )?strategy\\.\\w+ = \"[^\"]*\" ");
  std::string text = std::regex_replace(printable(reason), kSetting, "");
  text = text.substr(0, text.find("; "));
  if (text.size() <= room) return text;
  const size_t end = text.rfind(' ', room > 4 ? room - 4 : 0);
  return text.substr(0, end == std::string::npos ? room : end) + " ...";
}

}  // namespace

std::string refusal_lines(const std::vector<Refusal>& refusals, size_t columns) {
  std::string text;
  // Numbers differ where one reason holds for several of a kind.
  static const std::regex kNumber("[0-9]+");
  std::vector<std::pair<std::string, std::vector<const Refusal*>>> by_reason;
  for (const Refusal& refused : refusals) {
    const std::string key = refused.kind + std::regex_replace(refused.reason, kNumber, "");
    const auto found = std::find_if(by_reason.begin(), by_reason.end(),
                                    [&](const auto& entry) { return entry.first == key; });
    auto& same = found == by_reason.end()
                     ? by_reason.emplace_back(key, std::vector<const Refusal*>{})
                     : *found;
    same.second.push_back(&refused);
  }
  for (const auto& [key, some] : by_reason) {
    std::string names;
    for (const Refusal* refused : some) names += (names.empty() ? "" : ", ") + refused->name;
    if (some.size() > 1 && names.size() > columns / 2)
      names = fmt::format("{} and {} more", some.front()->name, some.size() - 1);
    const std::string start = "  " + printable(names) + ": ";
    const size_t room = columns > start.size() ? columns - start.size() : 0;
    const bool narrow = room < kLeastRoom;
    text += start + (narrow ? "\n    " : "") +
            gist(some.front()->reason, narrow ? columns - 4 : room) + "\n";
  }
  return text;
}

}  // namespace tutti
