// Asio's and Beast's own code, compiled here once (BOOST_ASIO_SEPARATE_COMPILATION, BOOST_BEAST_SEPARATE_COMPILATION).

#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
