#include "testbed/tar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "core/error.h"
#include "core/printable.h"

namespace tutti {
namespace {

constexpr size_t kBlock = 512;
constexpr size_t kMostMembers = 100'000;
constexpr char kPlainFile = '0';

// The header of POSIX.1-1988, one block. Numbers are octal texts.
struct TarHeader {
  std::array<char, 100> name;
  std::array<char, 8> mode, owner, group;
  std::array<char, 12> size, time;
  std::array<char, 8> checksum;
  char type;
  std::array<char, 100> link;
  std::array<char, 6> magic;
  std::array<char, 2> version;
  std::array<char, 32> owner_name, group_name;
  std::array<char, 8> major, minor;
  std::array<char, 155> prefix;
  std::array<char, 12> rest;
};
static_assert(sizeof(TarHeader) == kBlock);

template <size_t size>
void put(std::array<char, size>& field, std::string_view text) {
  std::copy_n(text.data(), std::min(size, text.size()), field.data());
}

template <size_t size>
std::string_view text_in(const std::array<char, size>& field) {
  const auto end = std::find(field.begin(), field.end(), '\0');
  return {field.data(), static_cast<size_t>(end - field.begin())};
}

// The sum of the bytes of a header, with spaces in the place of the sum itself.
size_t checksum_of(TarHeader header) {
  header.checksum.fill(' ');
  std::array<unsigned char, kBlock> bytes;
  std::memcpy(bytes.data(), &header, kBlock);
  size_t sum = 0;
  for (const unsigned char byte : bytes) sum += byte;
  return sum;
}

std::optional<size_t> octal(std::string_view digits) {
  while (!digits.empty() && digits.front() == ' ') digits.remove_prefix(1);
  while (!digits.empty() && digits.back() == ' ') digits.remove_suffix(1);
  if (digits.empty()) return std::nullopt;
  size_t value = 0;  // 12 digits are 36 bits
  for (const char digit : digits) {
    if (digit < '0' || digit > '7') return std::nullopt;
    value = 8 * value + static_cast<size_t>(digit - '0');
  }
  return value;
}

size_t whole_blocks(size_t size) { return (size + kBlock - 1) / kBlock * kBlock; }

// What is wrong with a name; nullptr: nothing.
const char* fault_of_name(const std::string& name) {
  if (name.empty()) return "has no name";
  if (!is_one_line(name)) return "has control characters in its name";
  if (name.front() == '/' || name.find('\\') != std::string::npos)
    return "is not below the folder that it is unpacked to";
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = std::string_view(name).substr(begin, end - begin);
    if (part == "..") return "is not below the folder that it is unpacked to";
    if (part.empty() || part == ".") return "has an empty part in its name";
    begin = end + 1;
  }
  return nullptr;
}

TarHeader header_of(const std::string& name, size_t size) {
  if (const char* fault = fault_of_name(name))
    throw DataError(fmt::format("\"{}\" {}, so it can be in no archive", printable(name), fault));
  TarHeader header{};
  std::string_view last = name, prefix;
  if (name.size() > header.name.size()) {
    const size_t slash = name.find('/', name.size() - header.name.size() - 1);
    if (slash == std::string::npos || slash > header.prefix.size())
      throw DataError(fmt::format("{}: the name is too long for an archive", name));
    prefix = std::string_view(name).substr(0, slash);
    last = std::string_view(name).substr(slash + 1);
  }
  put(header.name, last);
  put(header.prefix, prefix);
  put(header.mode, "0000644");
  put(header.owner, "0000000");
  put(header.group, "0000000");
  put(header.size, fmt::format("{:011o}", size));
  put(header.time, "00000000000");
  header.type = kPlainFile;
  put(header.magic, std::string_view("ustar\0", 6));
  put(header.version, "00");
  put(header.checksum, fmt::format("{:06o}", checksum_of(header)));
  header.checksum[7] = ' ';
  return header;
}

[[noreturn]] void refuse_archive(const std::string& where, const std::string& what) {
  throw DataError(fmt::format("{}: {}; get the file again from who made it", where, what));
}

void require_plain(const TarHeader& header, const std::string& name, const std::string& where) {
  if (const char* fault = fault_of_name(name))
    refuse_archive(where, fmt::format("its member \"{}\" {}", printable(name), fault));
  if (header.type != kPlainFile && header.type != '\0')
    refuse_archive(
        where, fmt::format("its member \"{}\" is no plain file but a link, a folder or a device",
                           printable(name)));
}

}  // namespace

std::string tar_of(const Members& members) {
  std::string tar;
  for (const auto& [name, content] : members) {
    const TarHeader header = header_of(name, content.size());
    tar.append(reinterpret_cast<const char*>(&header), kBlock);
    tar += content;
    tar.resize(whole_blocks(tar.size()), '\0');
  }
  return tar.append(2 * kBlock, '\0');
}

Members members_of_tar(std::string_view tar, const std::string& where) {
  Members members;
  for (size_t at = 0;; at += kBlock) {
    if (tar.size() - at < kBlock) refuse_archive(where, "it ends too early");
    TarHeader header;
    std::memcpy(&header, tar.data() + at, kBlock);
    const std::string_view block = tar.substr(at, kBlock);
    if (std::all_of(block.begin(), block.end(), [](char c) { return c == '\0'; })) return members;
    if (text_in(header.magic) != "ustar" || octal(text_in(header.checksum)) != checksum_of(header))
      refuse_archive(where, fmt::format("it is no tar archive, or damaged at byte {}", at));
    std::string name(text_in(header.name));
    if (!text_in(header.prefix).empty()) name = fmt::format("{}/{}", text_in(header.prefix), name);
    require_plain(header, name, where);
    const std::optional<size_t> size = octal(text_in(header.size));
    const size_t left = tar.size() - at - kBlock;
    if (!size) refuse_archive(where, fmt::format("the size of its member \"{}\" is none", name));
    if (*size > left)
      refuse_archive(where,
                     fmt::format("it ends too early, within its member \"{}\": {} bytes of {} are "
                                 "there",
                                 name, left, *size));
    if (!members.emplace(name, tar.substr(at + kBlock, *size)).second)
      refuse_archive(where, fmt::format("it has two members \"{}\"", name));
    if (members.size() > kMostMembers)
      refuse_archive(where, fmt::format("it has more than {} members", kMostMembers));
    at += std::min(whole_blocks(*size), left);
  }
}

}  // namespace tutti
