#include "audio_chain.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace stt {

BlockPool::Block BlockPool::acquire() {
    std::unique_ptr<AudioBlock> block;
    if (free_.empty()) {
        block = std::make_unique_for_overwrite<AudioBlock>();
        // So that `release` never has to allocate.
        free_.reserve(in_use_ + 1);
    } else {
        block = std::move(free_.back());
        free_.pop_back();
    }
    ++in_use_;
    return {block.release(), Release{this}};
}

void BlockPool::release(AudioBlock* block) noexcept {
    // What an overload has left behind goes back to the allocator; what the next second needs stays.
    constexpr std::size_t free_min = 64;
    --in_use_;
    std::unique_ptr<AudioBlock> owned{block};
    if (free_.size() < std::max(free_min, in_use_ / 2) && free_.size() < free_.capacity()) {
        free_.push_back(std::move(owned));
    }
}

AudioChain::AudioChain(AudioChain&& other) noexcept
    : blocks_{std::exchange(other.blocks_, {})}, begin_{std::exchange(other.begin_, 0)},
      end_{std::exchange(other.end_, 0)} {}

AudioChain& AudioChain::operator=(AudioChain&& other) noexcept {
    blocks_ = std::exchange(other.blocks_, {});
    begin_ = std::exchange(other.begin_, 0);
    end_ = std::exchange(other.end_, 0);
    return *this;
}

void AudioChain::push_back(BlockPool& pool, TimePoint received_at, Frame frame) {
    if (end_ == blocks_.size() * AudioBlock::frames_max) {
        blocks_.push_back(pool.acquire());
    }
    auto& block = *blocks_.back();
    const auto index = end_ % AudioBlock::frames_max;
    block.received_at[index] = received_at;
    std::memcpy(block.pcm.data() + (index * frame_bytes), frame.data(), frame_bytes);
    ++end_;
}

TimePoint AudioChain::pop_front() {
    const auto dropped = front_received_at();
    ++begin_;
    if (begin_ == AudioBlock::frames_max) {
        blocks_.erase(blocks_.begin());
        begin_ = 0;
        end_ -= AudioBlock::frames_max;
    }
    return dropped;
}

std::span<const std::byte> AudioChain::bytes_at(std::size_t offset_bytes) const {
    constexpr auto block_bytes = AudioBlock::frames_max * frame_bytes;
    const auto from = (begin_ * frame_bytes) + offset_bytes;
    const auto to = std::min((from / block_bytes + 1) * block_bytes, end_ * frame_bytes);
    return std::span{blocks_[from / block_bytes]->pcm}.subspan(from % block_bytes, to - from);
}

} // namespace stt
