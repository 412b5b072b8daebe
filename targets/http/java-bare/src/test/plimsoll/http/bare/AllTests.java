package plimsoll.http.bare;
class AllTests {}
