package plimsoll.http.test;
class X {}
