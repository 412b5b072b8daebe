#include "versions.hpp"

#include <gnu/libc-version.h>
#include <nghttp2/nghttp2.h>
#include <simdjson.h>

#include <boost/asio/version.hpp>
#include <boost/beast/version.hpp>
#include <boost/version.hpp>

#include "json_writer.hpp"

namespace stt {

namespace {

// simdjson's version is a macro without quotes.
#define STT_TEXT_OF_TOKENS(...) #__VA_ARGS__
#define STT_TEXT_OF(macro) STT_TEXT_OF_TOKENS(macro)

std::string dotted(int major, int minor, int patch) {
    return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

std::string boost_version() {
    return dotted(BOOST_VERSION / 100'000, BOOST_VERSION / 100 % 1000, BOOST_VERSION % 100);
}

std::string asio_version() {
    return dotted(BOOST_ASIO_VERSION / 100'000, BOOST_ASIO_VERSION / 100 % 1000, BOOST_ASIO_VERSION % 100);
}

} // namespace

std::string start_line(std::uint16_t port, std::size_t worker_threads) {
    // Beast's version is a counter; the others are those of what is linked, as far as it can say.
    const auto libraries = JsonObjectWriter{256}
                               .field("boost", boost_version())
                               .field("boost.asio", asio_version())
                               .field("boost.beast", BOOST_BEAST_VERSION_STRING)
                               .field("nghttp2", nghttp2_version(0)->version_str)
                               .field("simdjson", STT_TEXT_OF(SIMDJSON_VERSION))
                               .field("libstdc++", STT_TEXT_OF(_GLIBCXX_RELEASE))
                               .field("glibc", gnu_get_libc_version())
                               .finish();
    return JsonObjectWriter{512}
        .field("event", "start")
        .field("gateway", "cpp-beast")
        .field("runtime", "boost.asio " + asio_version())
        .field("language", "C++23, clang " __clang_version__)
        .raw_field("libraries", libraries)
        .field("port", port)
        .field("worker_threads", worker_threads)
        .finish();
}

} // namespace stt
