#include "core/chosen.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

class Shape {
 public:
  virtual ~Shape() = default;
  virtual void visit(Visitor& visitor) = 0;
  virtual double area() const = 0;
};

struct ShapeEntry {
  using Kind = Shape;
  std::string_view name;
  Cloned<Shape> (*make)();
};

enum class Colour { kRed, kGreen };
constexpr auto words(Colour) { return WordList<2>{"red", "green"}; }

struct Square : Shape {
  double side = 1;
  std::string title = "a square";
  Colour colour = Colour::kRed;

  void visit(Visitor& v) override {
    v.field("side", side, kPositive, "");
    v.field("title", title, "");
    choice(v, "colour", colour, "");
  }
  double area() const override { return side * side; }
};

struct Rectangle : Shape {
  double side = 2;
  int64_t height = 1;
  std::string title = "a rectangle";
  Colour colour = Colour::kRed;

  void visit(Visitor& v) override {
    v.field("side", side, kPositive, "");
    v.field("height", height, kPositive, "");
    v.field("title", title, "");
    choice(v, "colour", colour, "");
  }
  double area() const override { return side * static_cast<double>(height); }
};

// Its side is no number, and its only colour is no colour of the others.
struct Tent : Shape {
  std::string side = "left";
  std::string colour = "brown";

  void visit(Visitor& v) override {
    v.field("side", side, "");
    v.choice("colour", colour, {"brown"}, "");
  }
  double area() const override { return 0; }
};

const std::vector<ShapeEntry>& shapes() {
  static const std::vector<ShapeEntry> all = {
      {"square", with_defaults<Shape, Square>},
      {"rectangle", with_defaults<Shape, Rectangle>},
      {"tent", with_defaults<Shape, Tent>},
  };
  return all;
}

Chosen<ShapeEntry> chosen(std::string_view name) {
  return Chosen<ShapeEntry>(*find_entry(shapes(), name));
}

TEST(Chosen, ACopySharesNothing) {
  Chosen<ShapeEntry> first = chosen("square");
  first.get<Square>().side = 3;
  Chosen<ShapeEntry> second = first;
  second.get<Square>().side = 4;
  EXPECT_EQ(first->area(), 9);
  EXPECT_EQ(second->area(), 16);
  first = second;
  second.get<Square>().side = 5;
  EXPECT_EQ(first->area(), 16);
}

TEST(Chosen, KnowsItsKindAlone) {
  const Chosen<ShapeEntry> square = chosen("square");
  EXPECT_EQ(square.name(), "square");
  EXPECT_NE(square.find<Square>(), nullptr);
  EXPECT_EQ(square.find<Rectangle>(), nullptr);
  EXPECT_THROW(square.get<Rectangle>(), std::logic_error);
  EXPECT_EQ(find_entry(shapes(), "circle"), nullptr);
  EXPECT_EQ(names_of(shapes()), (std::vector<std::string_view>{"square", "rectangle", "tent"}));
}

TEST(Chosen, AnotherKindKeepsWhatWasSetAndHasItsOwnDefaults) {
  Chosen<ShapeEntry> shape = chosen("square");
  shape.get<Square>().side = 3;
  shape.get<Square>().colour = Colour::kGreen;
  shape.become(shapes()[1]);
  EXPECT_EQ(shape.get<Rectangle>().side, 3);
  EXPECT_EQ(shape.get<Rectangle>().colour, Colour::kGreen);
  EXPECT_EQ(shape.get<Rectangle>().title, "a rectangle");
  shape.become(shapes()[1]);
  EXPECT_EQ(shape.get<Rectangle>().side, 3) << "nothing changed";
}

TEST(Chosen, WhatMeansSomethingElseIsNotCarriedOver) {
  Chosen<ShapeEntry> shape = chosen("square");
  shape.get<Square>().side = 3;
  shape.get<Square>().colour = Colour::kGreen;
  shape.become(shapes()[2]);
  EXPECT_EQ(shape.get<Tent>().side, "left");
  EXPECT_EQ(shape.get<Tent>().colour, "brown");
}

TEST(Words, NameTheValuesOfAnEnum) {
  EXPECT_EQ(word_of(Colour::kRed), "red");
  EXPECT_EQ(word_of(Colour::kGreen), "green");
  EXPECT_EQ(value_of("green", Colour::kRed), Colour::kGreen);
  EXPECT_EQ(value_of("blue", Colour::kGreen), Colour::kGreen);
}

}  // namespace
}  // namespace tutti
