// Moves messages from an Outbox to a server stream, one write at a time.
//
// Whoever holds the turn may touch the outbox, the encoder and the transport; the turn is with a
// job on the executor, with a write in flight, or free. Waking takes a free turn; ending takes a
// free turn and finishes, and otherwise leaves a note that the holder obeys. So take() is never
// called twice at once, never two writes are in flight, and finish() happens exactly once.
//
// A message is encoded piece by piece, each when the one before has been written: a slow peer
// holds one piece and not a message.
//
// Thread rule: wake, end: any thread, never blocking. written: the transport, once per write.
//              closed: the transport, once, when nothing else can reach the pump any more.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "proxypool/base/concurrent.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/ports/control_plane.hpp"

namespace proxypool::rpc {

// A stream that can be told to end.
class Endable {
 public:
  virtual ~Endable() = default;
  virtual void end(Error reason) = 0;
};

// Encoder: made from a Message; `Result<bool> next(Wire&)` fills the next piece, false at the end.
template <class Message, class Encoder>
class OutboxPump final : public Endable,
                         public std::enable_shared_from_this<OutboxPump<Message, Encoder>> {
 public:
  using Wire = typename Encoder::Wire;
  using OutboxPtr = std::shared_ptr<ports::Outbox<Message>>;
  using Open = std::function<Result<OutboxPtr>(std::function<void()> wake)>;

  class Transport {
   public:
    virtual ~Transport() = default;
    // Starts a write; written() follows. `piece` stays as it is until then.
    virtual void write(const Wire& piece) = 0;
    // The last call that the transport gets.
    virtual void finish(const Error& reason) = 0;
    // Calls `turn` soon, once, on a thread that may block; or at once when ending() is true.
    virtual void run(std::function<void()> turn) = 0;
  };

  explicit OutboxPump(Transport& transport) : transport_(transport) {}

  // Opens the outbox on the executor, and pumps from then on.
  void start(Open open) {
    transport_.run(
        [self = this->shared_from_this(), open = std::move(open)] { self->first_turn(open); });
  }

  void wake() {
    const bool mine = state_.with([](State& state) {
      if (state.turn == Turn::Held) state.woken = true;
      if (state.turn != Turn::Free) return false;
      state.turn = Turn::Held;
      return true;
    });
    if (mine) take_soon();
  }

  void written(bool delivered) {
    if (!delivered) return finish({ErrorCode::Unavailable, Origin::Client, "the peer is gone"});
    if (!write_next()) take_soon();
  }

  void end(Error reason) override {
    const bool mine = state_.with([&](State& state) {
      if (!state.ending) state.ending = reason;
      if (state.turn != Turn::Free) return false;
      state.turn = Turn::Held;
      return true;
    });
    if (mine) finish(reason);
  }

  [[nodiscard]] bool ending() const {
    return state_.with([](const State& state) { return state.ending.has_value(); });
  }

  void closed() {
    if (outbox_) outbox_->closed();
    outbox_.reset();
  }

 private:
  enum class Turn : std::uint8_t { Held, Free, Over };
  struct State {
    Turn turn = Turn::Held;  // with start()
    bool woken = false;      // since the last take()
    std::optional<Error> ending;
  };

  void first_turn(const Open& open) {
    if (write_next()) return;  // ended before it was opened
    auto outbox = open([weak = this->weak_from_this()] {
      if (const auto self = weak.lock()) self->wake();
    });
    if (!outbox) return finish(outbox.error());
    outbox_ = *std::move(outbox);
    take_turn();
  }

  void take_soon() {
    transport_.run([self = this->shared_from_this()] { self->take_turn(); });
  }

  // REQUIRES: the turn is ours.
  void take_turn() {
    while (!write_next()) {
      state_.with([](State& state) { state.woken = false; });
      auto message = outbox_->take();
      if (!message) return finish(message.error());
      if (*message) {
        encoder_.emplace(*std::move(*message));
      } else if (give_back()) {
        return;
      }
    }
  }

  // Whether the turn has gone on to a write or to the end.
  bool write_next() {
    const auto reason = state_.with([](const State& state) { return state.ending; });
    if (reason) {
      finish(*reason);
      return true;
    }
    if (!encoder_) return false;
    const auto more = encoder_->next(piece_);
    if (!more) {
      finish(more.error());
      return true;
    }
    if (*more) {
      transport_.write(piece_);
      return true;
    }
    encoder_.reset();
    return false;
  }

  bool give_back() {
    return state_.with([](State& state) {
      if (state.woken || state.ending) return false;
      state.turn = Turn::Free;
      return true;
    });
  }

  void finish(const Error& reason) {
    state_.with([](State& state) { state.turn = Turn::Over; });
    encoder_.reset();
    transport_.finish(reason);
  }

  Transport& transport_;
  Guarded<State> state_;
  // Of the turn's holder.
  OutboxPtr outbox_;
  std::optional<Encoder> encoder_;
  Wire piece_;
};

}  // namespace proxypool::rpc
