// A description is written and read alike, and what does not fit it is named.
#include <gtest/gtest.h>

#include <cmath>

#include "core/described_json.h"
#include "core/described_reference.h"

namespace tutti {
namespace {

using nlohmann::json;

}  // namespace

struct Planet {
  std::string name;
  std::optional<double> mass;
  std::optional<std::string> moon;
};
static void visit(RecordVisitor& v, Planet& planet) {
  v.field("name", planet.name, "Its name");
  v.field("mass", planet.mass, "Its mass");
  v.field("moon", planet.moon, "Its moon", Presence::kWhenKnown);
}

struct Orbit {
  int64_t from = 0, to = 0;
};
static void visit_value(RecordVisitor& v, Orbit& orbit) {
  v.row("[from, to]", 2, [&] {
    v.item(orbit.from);
    v.item(orbit.to);
    v.require(orbit.from <= orbit.to, "", "");
  });
}

struct Sky {
  int kind = 0;
  uint64_t count = 0;
  bool clear = false;
  std::vector<Planet> planets;
  std::map<std::string, double> stars;
  std::vector<Orbit> orbits;
  std::vector<double> nights;
  json note;
};
static void visit(RecordVisitor& v, Sky& sky) {
  v.field("kind", sky.kind, "A small number");
  v.field("count", sky.count, "A large number");
  v.field("clear", sky.clear, "Whether it is", Presence::kMayMiss);
  v.field("planets", sky.planets, "Planets");
  v.field("stars", sky.stars, "Stars", Presence::kMayMiss);
  v.field("orbits", sky.orbits, "Orbits", Presence::kMayMiss);
  v.field("nights", sky.nights, "Nights", Presence::kMayMiss);
  v.require(sky.nights.size() < 4, "nights", "are too many");
  v.field("note", sky.note, "Anything", Presence::kMayMiss);
}

namespace {

json example() {
  Sky sky;
  sky.kind = -3;
  sky.count = uint64_t{1} << 63;
  sky.planets = {{"earth", 1.0, "moon"}, {"x", {}, {}}};
  sky.stars = {{"sun", 0.1}, {"nova", INFINITY}};
  sky.orbits = {{1, 2}};
  sky.nights = {1, NAN};
  sky.note = {1, "two"};
  return json_of(sky);
}

TEST(Described, IsWrittenAsItSays) {
  EXPECT_EQ(example().dump(),
            "{\"clear\":false,\"count\":9223372036854775808,\"kind\":-3,\"nights\":[1.0,null],"
            "\"note\":[1,\"two\"],\"orbits\":[[1,2]],\"planets\":[{\"mass\":1.0,\"moon\":\"moon\","
            "\"name\":\"earth\"},{\"mass\":null,\"name\":\"x\"}],\"stars\":{\"nova\":null,"
            "\"sun\":0.1}}");
  EXPECT_EQ(json_of(described_by<Sky>(example())), example());
}

TEST(Described, WhatMayMissMayMiss) {
  const auto sky = described_by<Sky>({{"kind", 1}, {"count", 2.0}, {"planets", json::array()},
                                      {"clear", nullptr}, {"unknown", 1}});
  EXPECT_EQ(sky.count, 2u) << "a whole number with a point";
  EXPECT_FALSE(sky.clear);
  EXPECT_TRUE(sky.stars.empty());
}

std::string mismatch(const char* place, const json& value) {
  json changed = example();
  changed[json::json_pointer(place)] = value;
  try {
    described_by<Sky>(changed);
  } catch (const Mismatch& found) {
    return found.place + " " + found.problem;
  }
  return "none";
}

TEST(Described, NamesThePlaceAndWhatIsWrong) {
  EXPECT_EQ(mismatch("/kind", "x"), "kind is string, not a whole number");
  EXPECT_EQ(mismatch("/kind", 1.5), "kind is number, not a whole number");
  EXPECT_EQ(mismatch("/kind", 1e300), "kind is number, not a whole number");
  EXPECT_EQ(mismatch("/kind", int64_t{1} << 40), "kind is a number that is too large");
  EXPECT_EQ(mismatch("/count", -1), "count is number, not a whole number");
  EXPECT_EQ(mismatch("/clear", 1), "clear is number, not true or false");
  EXPECT_EQ(mismatch("/planets", 1), "planets is number, not a list");
  EXPECT_EQ(mismatch("/planets/1", 1), "planets[1] is number, not an object");
  EXPECT_EQ(mismatch("/planets/1/name", 1), "planets[1].name is number, not a text");
  EXPECT_EQ(mismatch("/planets/1/mass", true), "planets[1].mass is boolean, not a number or null");
  EXPECT_EQ(mismatch("/planets/1", json::object()), "planets[1].name is missing");
  EXPECT_EQ(mismatch("/stars/sun", "hot"), "stars.sun is string, not a number or null");
  EXPECT_EQ(mismatch("/orbits/0", {1, 2, 3}), "orbits[0] is array, not [from, to]");
  EXPECT_EQ(mismatch("/orbits/0/1", "x"), "orbits[0] is array, not [from, to]");
  EXPECT_EQ(mismatch("/orbits/0", {2, 1}), "orbits[0] is array, not [from, to]");
  EXPECT_EQ(mismatch("/nights/1", "x"), "nights[1] is string, not a number or null");
  EXPECT_EQ(mismatch("/nights", {1, 2, 3, 4}), "nights are too many");
  EXPECT_EQ(mismatch("/note", json::object()), "none");
}

TEST(Described, IsDocumented) {
  DocumentedTypes documented;
  Sky sky;
  const auto keys =
      described_keys("sky.json", [&](RecordVisitor& v) { visit(v, sky); }, documented);
  const std::string table = key_table(keys);
  for (const char* line :
       {"| `kind` | whole number | A small number |\n", "| `planets` | list: object | Planets |\n",
        "| `planets[].mass` | number or null | Its mass |\n",
        "| `planets[].moon` | text, or absent | Its moon |\n",
        "| `stars` | object, by name: number or null | Stars |\n",
        "| `orbits` | list: [from, to] | Orbits |\n"})
    EXPECT_NE(table.find(line), std::string::npos) << line << " in\n" << table;
}

}  // namespace
}  // namespace tutti
