#include "core/printable.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

using namespace std::string_literals;

TEST(Printable, TextOfAllLanguagesStaysAsItIs) {
  for (const std::string_view text : {"", "a b", "two\nlines\tand a tab",
                                      "Gr\u00fc\u00dfe \u4f60\u597d \U0001f600", "\u00a0", "a\xff"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, WhatATerminalObeysIsShown) {
  EXPECT_EQ(printable("\x1b[31mred\x1b[0m"), "\\x1b[31mred\\x1b[0m");
  EXPECT_EQ(printable("a\0b"s), "a\\x00b");
  EXPECT_EQ(printable("done\rlost\x7f\a\b"), "done\\x0dlost\\x7f\\x07\\x08");
  EXPECT_EQ(printable("\u009b2J"), "\\xc2\\x9b2J") << "a control sequence in UTF-8";
  EXPECT_EQ(printable("\x9b\x9b"), "\\x9b\\x9b") << "and as a single byte";
}

TEST(Printable, NamesAreOneLine) {
  EXPECT_TRUE(is_one_line("Gr\u00fc\u00dfe 1"));
  for (const std::string& name : {"a\0b"s, "a\nb"s, "\x1b"s, "a\tb"s})
    EXPECT_FALSE(is_one_line(name));
}

}  // namespace
}  // namespace tutti
