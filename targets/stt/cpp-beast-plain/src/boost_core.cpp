// Boost.JSON's and Boost.URL's own code, compiled here once.

#include <boost/json/src.hpp>
#include <boost/url/src.hpp>
