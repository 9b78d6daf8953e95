#include "testbed/comparison_check.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.h"

namespace tutti {
namespace {

using nlohmann::json;

class Check {
 public:
  explicit Check(std::string where) : where_(std::move(where)) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(
        fmt::format("{}: {}; the file is damaged or was changed by hand: write it anew "
                    "with `tutti compare`",
                    where_, what));
  }
  [[noreturn]] void fail(const std::string& place, const json& found, const char* wanted) const {
    fail(fmt::format("{} is {}, not {}", place, found.type_name(), wanted));
  }

  void whole(const json& comparison) const;

 private:
  void strategy(const json& s, const std::string& place) const;
  void curves(const json& s, const std::string& place) const;
  void series(const json& s, const std::string& place) const;
  void timeline(const json& s, const std::string& place) const;
  void links(const json& s, const std::string& place) const;
  void clients(const json& s, const std::string& place) const;

  // What is absent or null is not known, which is fine. Else calls `visit(value, place)`.
  template <class F>
  void known(const json& object, const char* key, const std::string& place, const F& visit) const {
    const auto found = object.find(key);
    if (found != object.end() && !found->is_null()) visit(*found, place + "." + key);
  }
  void object(const json& value, const std::string& place) const {
    if (!value.is_object()) fail(place, value, "an object");
  }
  void array(const json& value, const std::string& place) const {
    if (!value.is_array()) fail(place, value, "a list");
  }
  // The places of a million points are only written when one is at fault.
  void numbers(const json& list, const std::string& place) const {
    array(list, place);
    for (size_t i = 0; i < list.size(); ++i)
      if (!list[i].is_number() && !list[i].is_null())
        fail(fmt::format("{}[{}]", place, i), list[i], "a number or null");
  }
  void numbers_of(const json& fields, const std::string& place) const {
    object(fields, place);
    for (const auto& [key, value] : fields.items())
      if (!value.is_number() && !value.is_null() && !value.is_array())
        fail(fmt::format("{}.{}", place, key), value, "a number or null");
  }

  std::string where_;
};

void Check::whole(const json& comparison) const {
  if (comparison.is_discarded()) fail("is not complete JSON");
  if (!comparison.is_object() || comparison.value("kind", json()) != "comparison")
    throw DataError(
        fmt::format("{}: is not a comparison; give the compare.json that `tutti "
                    "compare` wrote, or its folder",
                    where_));
  if (const json schema = comparison.value("schema", json()); schema != kComparisonSchema)
    throw DataError(
        fmt::format("{}: has schema {}, but this program reads {}; use the version of "
                    "tutti that wrote it, or compare anew",
                    where_, schema.dump(), kComparisonSchema));
  for (const char* key : {"task", "cluster", "definitions", "versions", "machine", "validation"})
    known(comparison, key, "comparison", [&](const json& v, const auto& at) { object(v, at); });
  const auto strategies = comparison.find("strategies");
  if (strategies == comparison.end() || !strategies->is_array() || strategies->empty())
    fail("has no strategies");
  for (size_t i = 0; i < strategies->size(); ++i)
    strategy((*strategies)[i], fmt::format("strategies[{}]", i));
}

void Check::strategy(const json& s, const std::string& place) const {
  object(s, place);
  for (const char* key : {"name", "status"})
    if (!s.contains(key) || !s[key].is_string())
      fail(place + "." + key, s.value(key, json()), "a text");
  for (const char* key : {"kind", "error", "fabric", "obtained", "shared_curve_of", "energy_method",
                          "co2e_method", "cost_method", "currency", "plan", "same_run_as"})
    known(s, key, place, [&](const json& value, const std::string& at) {
      if (!value.is_string()) fail(at, value, "a text");
    });
  for (const char* key : {"workers", "machines", "reached", "update_order", "scaling_efficiency"})
    known(s, key, place, [&](const json& value, const std::string& at) {
      if (!value.is_number()) fail(at, value, "a number");
    });
  for (const std::string& key : statistics_of_a_strategy())
    known(s, key.c_str(), place, [&](const json& v, const auto& at) { numbers_of(v, at); });
  known(s, "quality", place, [&](const json& qualities, const std::string& at) {
    object(qualities, at);
    for (const char* key : {"best", "final", "at_equal_samples", "at_equal_time", "validation_best",
                            "validation_final", "test_final"})
      known(qualities, key, at, [&](const json& v, const auto& inner) { numbers_of(v, inner); });
  });
  for (const char* key : {"time_split", "staleness", "age_s"})
    known(s, key, place, [&](const json& v, const auto& at) { numbers_of(v, at); });
  for (const char* key : {"taxonomy", "settings"})
    known(s, key, place, [&](const json& v, const auto& at) { object(v, at); });
  for (const char* key : {"seeds", "runs"})
    known(s, key, place, [&](const json& v, const auto& at) { array(v, at); });
  known(s, "missing", place, [&](const json& list, const std::string& at) {
    array(list, at);
    for (const json& text : list)
      if (!text.is_string()) fail(at, text, "a list of texts");
  });
  curves(s, place);
  series(s, place);
  timeline(s, place);
  links(s, place);
  clients(s, place);
  known(s, "nodes", place, [&](const json& nodes, const std::string& at) {
    array(nodes, at);
    for (size_t i = 0; i < nodes.size(); ++i)
      if (!nodes[i].is_object() || !nodes[i].value("rank", json()).is_number_integer())
        fail(fmt::format("{}[{}]", at, i), nodes[i], "an object with a rank");
  });
}

void Check::curves(const json& s, const std::string& place) const {
  known(s, "curves", place, [&](const json& all, const std::string& at) {
    array(all, at);
    for (size_t i = 0; i < all.size(); ++i) {
      const std::string inner = fmt::format("{}[{}]", at, i);
      object(all[i], inner);
      known(all[i], "points", inner, [&](const json& points, const std::string& points_at) {
        array(points, points_at);
        for (size_t k = 0; k < points.size(); ++k) {
          if (!points[k].is_object())
            fail(fmt::format("{}[{}]", points_at, k), points[k], "a point");
          for (const auto& [key, value] : points[k].items())
            if (!value.is_number() && !value.is_null())
              fail(fmt::format("{}[{}].{}", points_at, k, key), value, "a number or null");
        }
      });
    }
  });
}

void Check::series(const json& s, const std::string& place) const {
  known(s, "series", place, [&](const json& all, const std::string& at) {
    array(all, at);
    for (size_t i = 0; i < all.size(); ++i) {
      const std::string inner = fmt::format("{}[{}]", at, i);
      object(all[i], inner);
      const auto losses = all[i].find("loss");
      const size_t length = losses == all[i].end() ? 0 : losses->size();
      for (const char* key : {"step", "time_s", "samples", "loss"})
        known(all[i], key, inner, [&](const json& list, const std::string& list_at) {
          numbers(list, list_at);
          if (list.size() != length)
            fail(fmt::format("{} has {} values, but there are {} losses", list_at, list.size(),
                             length));
        });
    }
  });
}

void Check::timeline(const json& s, const std::string& place) const {
  known(s, "timeline", place, [&](const json& rows, const std::string& at) {
    array(rows, at);
    for (size_t i = 0; i < rows.size(); ++i) {
      const std::string inner = fmt::format("{}[{}]", at, i);
      if (!rows[i].is_object() || !rows[i].value("rank", json()).is_number_integer())
        fail(inner, rows[i], "an object with a rank");
      known(rows[i], "intervals", inner, [&](const json& intervals, const std::string& each_at) {
        array(intervals, each_at);
        for (size_t k = 0; k < intervals.size(); ++k) {
          const json& each = intervals[k];
          if (!each.is_array() || each.size() != 3 || !each[0].is_string() ||
              !each[1].is_number() || !each[2].is_number() || each[1] > each[2])
            fail(fmt::format("{}[{}]", each_at, k), each, "[kind, from, to] in order of time");
        }
      });
    }
  });
}

void Check::clients(const json& s, const std::string& place) const {
  known(s, "clients", place, [&](const json& table, const std::string& at) {
    object(table, at);
    const json columns = table.value("columns", json()), rows = table.value("rows", json());
    array(columns, at + ".columns");
    array(rows, at + ".rows");
    for (size_t i = 0; i < columns.size(); ++i)
      if (!columns[i].is_string()) fail(fmt::format("{}.columns[{}]", at, i), columns[i], "a name");
    for (size_t i = 0; i < rows.size(); ++i) {
      const std::string inner = fmt::format("{}.rows[{}]", at, i);
      numbers(rows[i], inner);
      if (rows[i].size() != columns.size()) fail(inner, rows[i], "a number for each column");
    }
  });
}

void Check::links(const json& s, const std::string& place) const {
  known(s, "links", place, [&](const json& all, const std::string& at) {
    array(all, at);
    for (size_t i = 0; i < all.size(); ++i) {
      const json& link = all[i];
      if (!link.is_array() || link.size() != 3 || !link[0].is_number_integer() ||
          !link[1].is_number_integer() || !link[2].is_number())
        fail(fmt::format("{}[{}]", at, i), link, "[from rank, to rank, bytes]");
    }
  });
}

}  // namespace

const std::vector<std::string>& statistics_of_a_strategy() {
  static const std::vector<std::string> names = {"to_target_s",
                                                 "to_target_normalised_s",
                                                 "steps_to_target",
                                                 "samples_to_target",
                                                 "converged_s",
                                                 "converged_steps",
                                                 "total_s",
                                                 "total_normalised_s",
                                                 "wall_s",
                                                 "cpu_s",
                                                 "startup_s",
                                                 "samples_per_s",
                                                 "steps",
                                                 "bytes_total",
                                                 "bytes_per_node",
                                                 "messages_total",
                                                 "messages_per_node",
                                                 "peak_memory_bytes",
                                                 "utilisation",
                                                 "energy_j",
                                                 "co2e_g",
                                                 "cost"};
  return names;
}

void check_comparison(const json& comparison, const std::string& where) {
  Check(where).whole(comparison);
}

}  // namespace tutti
