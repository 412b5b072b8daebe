// Asio's and Beast's own code, compiled once and here (BOOST_ASIO_SEPARATE_COMPILATION, BOOST_BEAST_SEPARATE_COMPILATION)
// and not again in each file that includes their headers.

#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
