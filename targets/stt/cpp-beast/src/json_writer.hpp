// Writes one flat JSON object.
//
// The two messages of the contract have fixed fields of numbers and short strings; that needs no document model. Numbers
// go through std::to_chars, which writes the shortest text that reads back as the same double.
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace stt {

class JsonObjectWriter {
public:
    explicit JsonObjectWriter(std::size_t expected_bytes) { text_.reserve(expected_bytes); }

    JsonObjectWriter& field(std::string_view name, std::string_view value) {
        begin(name);
        append_quoted(value);
        return *this;
    }

    // Without it a string literal would become a bool.
    JsonObjectWriter& field(std::string_view name, const char* value) { return field(name, std::string_view{value}); }

    JsonObjectWriter& field(std::string_view name, bool value) {
        begin(name);
        text_ += value ? "true" : "false";
        return *this;
    }

    template <class Number>
        requires(std::integral<Number> || std::floating_point<Number>) && (!std::same_as<Number, bool>)
    JsonObjectWriter& field(std::string_view name, Number value) {
        begin(name);
        // A double needs up to 24 characters.
        std::array<char, 32> digits{};
        const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), value);
        text_.append(digits.data(), written.ptr);
        return *this;
    }

    template <class Value> JsonObjectWriter& field(std::string_view name, const std::optional<Value>& value) {
        if (value) {
            return field(name, *value);
        }
        begin(name);
        text_ += "null";
        return *this;
    }

    /// Puts in what is JSON already.
    JsonObjectWriter& raw_field(std::string_view name, std::string_view json) {
        begin(name);
        text_ += json;
        return *this;
    }

    [[nodiscard]] std::string finish() {
        text_ += text_.empty() ? "{}" : "}";
        return std::move(text_);
    }

private:
    void begin(std::string_view name) {
        text_ += text_.empty() ? '{' : ',';
        append_quoted(name);
        text_ += ':';
    }

    void append_quoted(std::string_view value) {
        constexpr std::string_view hex_digits = "0123456789abcdef";
        text_ += '"';
        for (const char character : value) {
            const auto code = static_cast<unsigned char>(character);
            if (character == '"' || character == '\\') {
                text_ += '\\';
                text_ += character;
            } else if (code < 0x20) {
                text_ += "\\u00";
                text_ += hex_digits[code >> 4U];
                text_ += hex_digits[code & 0xFU];
            } else {
                text_ += character;
            }
        }
        text_ += '"';
    }

    std::string text_;
};

} // namespace stt
