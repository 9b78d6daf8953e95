// Archives and bundles: what is written is read again, and what a forger or a bad line made of it
// is refused by name, without memory or files that it has no right to.
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "core/temporary_folder.h"
#include "jobs/run_folder.h"
#include "testbed/bundle_file.h"

namespace tutti {
namespace {

template <class F>
std::string refusal_of(const F& read) {
  try {
    read();
  } catch (const DataError& error) {
    return error.what();
  }
  return "accepted";
}

void expect_part(const std::string& message, const std::string& part) {
  EXPECT_NE(message.find(part), std::string::npos) << message << " lacks: " << part;
}

Members small_members() {
  return {{"README.txt", "read me\n"}, {"jobs/ring-seed1.toml", std::string(700, 'j')}, {"z", ""}};
}

// Writes over a part of the first header, and makes its checksum right again.
std::string forged(std::string tar, size_t offset, std::string_view bytes) {
  tar.replace(offset, bytes.size(), bytes);
  tar.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(tar[i]);
  char digits[8];
  std::snprintf(digits, sizeof digits, "%06o", sum);
  tar.replace(148, 7, std::string_view(digits, 7));
  return tar;
}

constexpr size_t kNameAt = 0, kSizeAt = 124, kTypeAt = 156;

std::string refusal_of_tar(const std::string& tar) {
  return refusal_of([&] { members_of_tar(tar, "a file"); });
}

TEST(Tar, IsReadAsItWasWritten) {
  const std::string longest = std::string(100, 'a') + "/" + std::string(100, 'b');
  Members members = small_members();
  members[longest] = "long";
  EXPECT_EQ(members_of_tar(tar_of(members), "a file"), members);
  EXPECT_EQ(tar_of(members), tar_of(members));
  EXPECT_NE(refusal_of([] { tar_of({{std::string(300, 'a'), ""}}); }), "accepted");
  EXPECT_NE(refusal_of([] { tar_of({{"../a", ""}}); }), "accepted");
}

TEST(Tar, NothingEscapesTheFolder) {
  const std::string tar = tar_of({{"file", "content"}});
  using namespace std::string_view_literals;
  for (const auto& name : {"../file\0"sv, "/etc/passwd\0"sv, "a/../../file\0"sv, "..\0"sv,
                           "a\\..\\file\0"sv, "a//file\0"sv, "./file\0"sv, "\0"sv, "a\nb\0"sv})
    expect_part(refusal_of_tar(forged(tar, kNameAt, name)), "its member");
  for (const char type : {'1', '2', '3', '4', '5', '6', 'x', 'L'})
    expect_part(refusal_of_tar(forged(tar, kTypeAt, std::string(1, type))), "is no plain file");
}

TEST(Tar, SizesAreCheckedBeforeMemoryIsTaken) {
  const std::string tar = tar_of({{"file", "content"}});
  expect_part(refusal_of_tar(forged(tar, kSizeAt, "777777777777")), "\"file\"");
  expect_part(refusal_of_tar(forged(tar, kSizeAt, "00000010000")), "\"file\"");
  expect_part(refusal_of_tar(forged(tar, kSizeAt, "-0000000001")), "\"file\" is none");
  const std::string twice = tar.substr(0, 1024) + tar;
  expect_part(refusal_of_tar(twice), "two members \"file\"");
}

TEST(Tar, EveryShorterOneIsRefused) {
  const std::string tar = tar_of(small_members());
  for (size_t length = 0; length < tar.size() - 512; ++length)
    ASSERT_NE(refusal_of_tar(tar.substr(0, length)), "accepted") << length;
}

class BundleFileTest : public testing::Test {
 protected:
  std::string path() const { return folder_ / "bundle.tar.gz"; }
  void write() {
    BundleFile bundle;
    bundle.manifest.name = "small";
    bundle.members = small_members();
    write_bundle_file(path(), bundle);
  }
  // The archive with its manifest, to be changed behind the back of the manifest.
  Members unpacked() {
    gzFile file = gzopen(path().c_str(), "rb");
    std::string tar(size_t{1} << 20, '\0');
    tar.resize(static_cast<size_t>(gzread(file, tar.data(), static_cast<unsigned>(tar.size()))));
    gzclose(file);
    return members_of_tar(tar, path());
  }
  void pack(const std::string& tar) {
    gzFile file = gzopen(path().c_str(), "wb9");
    gzwrite(file, tar.data(), static_cast<unsigned>(tar.size()));
    gzclose(file);
  }
  std::string refusal() {
    return refusal_of([&] { read_bundle_file(path()); });
  }
  TemporaryFolder folder_;
};

TEST_F(BundleFileTest, SameContentsAreTheSameBytes) {
  write();
  const std::string first = read_file(path());
  write();
  EXPECT_EQ(read_file(path()), first);
  EXPECT_EQ(read_bundle_file(path()).members, small_members());
}

TEST_F(BundleFileTest, AnAlteredMemberIsNamed) {
  write();
  Members members = unpacked();
  members["README.txt"][0] = 'R';
  pack(tar_of(members));
  expect_part(refusal(), "README.txt was altered: its SHA-256 is " + sha256_of("Read me\n"));
  members = unpacked();
  members["extra"] = "x";
  members.erase("z");
  pack(tar_of(members));
  expect_part(refusal(), "extra is not in the manifest");
  expect_part(refusal(), "z is missing");
}

TEST_F(BundleFileTest, AManifestOfANewerVersionIsRefusedWithBoth) {
  write();
  Members members = unpacked();
  std::string& manifest = members[kManifest];
  const std::string schema = "\"schema\": 1";
  manifest.replace(manifest.find(schema), schema.size(), "\"schema\": 7");
  pack(tar_of(members));
  expect_part(refusal(), "has schema 7");
  expect_part(refusal(), "reads schema 1");
  members.erase(kManifest);
  pack(tar_of(members));
  expect_part(refusal(), "manifest.json: it is missing");
}

TEST_F(BundleFileTest, ABombIsRefusedBeforeItIsUnpacked) {
  pack(std::string(size_t{40} << 20, '\0'));
  ASSERT_LT(std::filesystem::file_size(path()), size_t{100'000});
  expect_part(refusal(), "unpack to more than");
}

TEST_F(BundleFileTest, WhatIsNoBundleIsRefused) {
  EXPECT_NE(refusal(), "accepted");  // there is none
  write();
  const std::string whole = read_file(path());
  for (size_t length = 0; length < whole.size(); ++length) {
    write_file(path(), whole.substr(0, length));
    ASSERT_NE(refusal(), "accepted") << length;
  }
  write_file(path(), "no archive");
  EXPECT_NE(refusal(), "accepted");
  std::filesystem::remove(path());
  std::filesystem::create_directory(path());
  EXPECT_NE(refusal(), "accepted");
}

// Whatever single byte is damaged, the members are those that were written, or it is said.
TEST_F(BundleFileTest, AnyDamagedByteIsSeen) {
  write();
  const std::string whole = read_file(path());
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    write_file(path(), damaged);
    try {
      ASSERT_EQ(read_bundle_file(path()).members, small_members()) << i;
    } catch (const DataError&) {
    }
  }
}

}  // namespace
}  // namespace tutti
