#include "tests/tidy/classes.h"

#include <algorithm>
#include <cctype>
#include <regex>

namespace tutti::tidy {
namespace {

// Expressions take long to make, and longer to match than a search for a word.
bool matches(const std::string& text, const std::regex& pattern) {
  return std::regex_search(text, pattern);
}
bool has(const std::string& text, const char* word) {
  return text.find(word) != std::string::npos;
}

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// The place after the brace that closes the one at `open`.
size_t after_braces(const std::string& text, size_t open) {
  size_t depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    if (text[i] == '{') ++depth;
    if (text[i] == '}' && --depth == 0) return i + 1;
  }
  return text.size();
}

enum class Kind { kNeither, kFunction, kData };

// A function has a parenthesis before any initial value, outside of template arguments.
Kind kind_of(std::string declaration) {
  static const std::regex alignment("alignas\\([^)]*\\)");
  static const std::regex head("^\\s*template\\s*<[^{]*?>\\s*(requires [^{(]*?\\s)?(?=\\w)");
  static const std::regex others(
      "^\\s*((using|friend|typedef|static_assert|enum|class|struct|union)\\b|$)");
  if (has(declaration, "alignas")) declaration = std::regex_replace(declaration, alignment, "");
  if (has(declaration, "template")) declaration = std::regex_replace(declaration, head, "");
  if (matches(declaration, others)) return Kind::kNeither;
  if (has(declaration, "operator")) return Kind::kFunction;
  int angles = 0;
  for (size_t i = 0; i < declaration.size(); ++i) {
    const char c = declaration[i];
    if (c == '<') ++angles;
    if (c == '>' && declaration[i - 1] != '-') --angles;
    if (angles == 0 && c == '(') return Kind::kFunction;
    if (angles == 0 && (c == '=' || c == '{')) break;
  }
  return declaration.find("static ") == declaration.find_first_not_of(" \n") ? Kind::kNeither
                                                                            : Kind::kData;
}

// "int a_ = 0, b_;" declares two.
size_t names_in(const std::string& declaration) {
  int depth = 0, angles = 0;
  size_t names = 1;
  for (size_t i = 0; i < declaration.size(); ++i) {
    const char c = declaration[i];
    if (c == '(' || c == '{' || c == '[') ++depth;
    if (c == ')' || c == '}' || c == ']') --depth;
    if (c == '<') ++angles;
    if (c == '>' && declaration[i - 1] != '-') --angles;
    if (c == ',' && depth == 0 && angles <= 0) ++names;
  }
  return names;
}

// Reads the members of one class, from the place after its opening brace.
class Body {
 public:
  Body(const std::string& text, size_t begin, bool hidden, ClassSize& size)
      : text_(text), at_(begin), hidden_(hidden), size_(size) {}

  void read() {
    while (at_ < text_.size() && text_[at_] != '}') {
      const char c = text_[at_];
      if (c == '{')
        read_braces();
      else if (c == ';')
        end_declaration();
      else
        read_character(c);
    }
  }

 private:
  // The body of a function ends it; other braces are initial values, default arguments or nested
  // types.
  void read_braces() {
    const size_t end = after_braces(text_, at_);
    size_t next = end;  // there is something: at least the end of the class
    while (is_space(text_[next])) ++next;
    const bool in_arguments = std::count(current_.begin(), current_.end(), '(') >
                              std::count(current_.begin(), current_.end(), ')');
    const bool goes_on = in_arguments || text_[next] == ',' || text_[next] == '{';
    if (kind_of(current_) == Kind::kFunction && !goes_on) {
      const bool lines = text_.substr(at_, end - at_).find('\n') != std::string::npos;
      if (lines && !has(current_, " override")) ++size_.functions;
      current_.clear();
    } else {
      current_ += "{}";
    }
    at_ = end;
  }

  void end_declaration() {
    static const std::regex given("=\\s*(default|delete)\\s*$");
    const Kind kind = kind_of(current_);
    if (kind == Kind::kFunction && !has(current_, " override") && !matches(current_, given))
      ++size_.functions;
    if (kind == Kind::kData) {
      size_.members += names_in(current_);
      size_.has_hidden_state |= hidden_;
    }
    current_.clear();
    ++at_;
  }

  void read_character(char c) {
    current_ += c;
    ++at_;
    if (c != ':' || text_[at_] == ':') return;
    static const std::regex access("^\\s*(public|protected|private)\\s*:$");
    if (!matches(current_, access)) return;
    hidden_ = !has(current_, "public");
    current_.clear();
  }

  const std::string& text_;
  size_t at_;
  bool hidden_;
  ClassSize& size_;
  std::string current_;
};

}  // namespace

std::string without_comments(const std::string& text) {
  std::string code = text;
  const auto blank = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < std::min(end, code.size()); ++i)
      if (code[i] != '\n') code[i] = ' ';
  };
  const auto end_of_line = [&](size_t i) { return std::min(text.find('\n', i), text.size()); };
  for (size_t i = 0; i < text.size(); ++i) {
    const bool begins_line = i == 0 || text[i - 1] == '\n';
    const bool comment = text.compare(i, 2, "//") == 0;
    const bool digits = i > 0 && std::isalnum(static_cast<unsigned char>(text[i - 1])) != 0;
    size_t end = i;
    if (comment || (begins_line && text[i] == '#')) {
      end = end_of_line(i);
    } else if (text[i] == '"' || (text[i] == '\'' && !digits)) {  // not 1'000
      for (end = i + 1; end < text.size() && text[end] != text[i]; ++end)
        if (text[end] == '\\') ++end;
      ++end;
    }
    if (end == i) continue;
    blank(i, end);
    i = end - 1;
  }
  return code;
}

std::vector<ClassSize> classes_in(const std::string& text) {
  static const std::regex head(
      "\\b(class|struct)\\s+(alignas\\(\\w+\\)\\s+)?(\\w+)\\s*(final\\s*)?(:[^:{;()][^{;()]*)?\\{");
  const std::string code = without_comments(text);
  std::vector<ClassSize> found;
  for (auto it = std::sregex_iterator(code.begin(), code.end(), head); it != std::sregex_iterator();
       ++it) {
    const auto begin = static_cast<size_t>(it->position());
    if (begin >= 5 && code.compare(begin - 5, 5, "enum ") == 0) continue;
    ClassSize size;
    size.name = (*it)[3];
    size.line = 1 + static_cast<size_t>(std::count(
                        code.begin(), code.begin() + static_cast<std::ptrdiff_t>(begin), '\n'));
    Body(code, begin + static_cast<size_t>(it->length()), (*it)[1] == "class", size).read();
    found.push_back(size);
  }
  return found;
}

}  // namespace tutti::tidy
