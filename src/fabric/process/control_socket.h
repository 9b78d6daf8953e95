// One side of a control connection: frames in and out of a stream socket, with file descriptors
// beside them.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "fabric/process/control.h"

namespace tutti::process {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() { reset(); }
  int get() const { return fd_; }
  void reset();

 private:
  int fd_ = -1;
};

class ControlSocket {
 public:
  explicit ControlSocket(FileDescriptor socket) : socket_(std::move(socket)) {}

  int fd() const { return socket_.get(); }
  void close() { socket_.reset(); }

  // Puts a message into the queue and sends what the socket takes: never blocks, because the other
  // side may be computing. `attached` goes with it.
  void post(const ControlMessage& message, std::shared_ptr<FileDescriptor> attached = nullptr);
  // Continues; true when the queue is empty.
  bool flush();
  // Sends all that is queued; false when the other side does not take it within `timeout_s`, or
  // when `stop` is raised meanwhile.
  bool drain(double timeout_s, const std::atomic<bool>* stop = nullptr);

  // Reads what is there, but so much only that whoever sends without end can neither take memory
  // before its frames are looked at nor keep others waiting. False at the end of the stream (or
  // when it broke, which is the same).
  bool fill();
  bool more() const { return more_; }  // the last fill() may have left something
  // The next whole message. A kWindow message's descriptor is then in take_descriptor().
  std::optional<ControlMessage> next() { return reader_.next(); }
  FileDescriptor take_descriptor();

 private:
  struct Outgoing {
    std::string bytes;
    std::shared_ptr<FileDescriptor> attached;
    size_t sent = 0;
  };
  bool send_some(Outgoing& item);  // false: the socket takes no more now

  FileDescriptor socket_;
  FrameReader reader_;
  std::deque<Outgoing> queue_;
  std::deque<FileDescriptor> descriptors_;
  bool more_ = false;
};

// A connected pair of stream sockets, both non-blocking.
std::pair<FileDescriptor, FileDescriptor> control_pair();

}  // namespace tutti::process
