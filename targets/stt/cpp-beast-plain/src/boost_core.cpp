// Boost.JSON's own code, compiled here once.

#include <boost/json/src.hpp>
