// Audio in blocks of one size, which a pool hands out and takes back.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "clock.hpp"
#include "messages.hpp"

namespace stt {

using Frame = std::span<const std::byte, frame_bytes>;

/// Half a second of audio: 16,000 bytes, so that a whole block fits into one HTTP/2 DATA frame, whose largest size is
/// 16,384 bytes unless the peer allows more.
struct AudioBlock {
    static constexpr std::size_t frames_max = 25;

    std::array<TimePoint, frames_max> received_at;
    std::array<std::byte, frames_max * frame_bytes> pcm;
};

/// Blocks for the sessions of one thread. It must outlive all of them.
class BlockPool {
public:
    struct Release {
        BlockPool* pool = nullptr;
        void operator()(AudioBlock* block) const noexcept { pool->release(block); }
    };
    using Block = std::unique_ptr<AudioBlock, Release>;

    BlockPool() = default;
    ~BlockPool() = default;
    BlockPool(const BlockPool&) = delete;
    BlockPool& operator=(const BlockPool&) = delete;
    BlockPool(BlockPool&&) = delete;
    BlockPool& operator=(BlockPool&&) = delete;

    [[nodiscard]] Block acquire();

    [[nodiscard]] std::size_t blocks_in_use() const noexcept { return in_use_; }
    [[nodiscard]] std::size_t blocks_free() const noexcept { return free_.size(); }

private:
    void release(AudioBlock* block) noexcept;

    std::vector<std::unique_ptr<AudioBlock>> free_;
    std::size_t in_use_ = 0;
};

/// A queue of frames that can be read as the bytes of an HTTP body without copying them together. Moving it away empties
/// it.
class AudioChain {
public:
    AudioChain() = default;
    ~AudioChain() = default;
    AudioChain(const AudioChain&) = delete;
    AudioChain& operator=(const AudioChain&) = delete;
    AudioChain(AudioChain&& other) noexcept;
    AudioChain& operator=(AudioChain&& other) noexcept;

    void push_back(BlockPool& pool, TimePoint received_at, Frame frame);

    /// Drops the oldest frame and tells when it was received. There must be one.
    TimePoint pop_front();

    [[nodiscard]] std::size_t frames() const noexcept { return end_ - begin_; }
    [[nodiscard]] bool empty() const noexcept { return begin_ == end_; }
    [[nodiscard]] std::size_t size_bytes() const noexcept { return frames() * frame_bytes; }
    [[nodiscard]] TimePoint front_received_at() const { return received_at(begin_); }
    [[nodiscard]] TimePoint back_received_at() const { return received_at(end_ - 1); }

    /// As many bytes as lie together at `offset_bytes`, which must be less than `size_bytes()`.
    [[nodiscard]] std::span<const std::byte> bytes_at(std::size_t offset_bytes) const;

private:
    [[nodiscard]] TimePoint received_at(std::size_t index) const {
        return blocks_[index / AudioBlock::frames_max]->received_at[index % AudioBlock::frames_max];
    }

    std::vector<BlockPool::Block> blocks_;
    /// Frames are counted from the first one of the first block.
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
};

} // namespace stt
